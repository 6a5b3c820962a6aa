// tile.hpp: a piece of a tensor that fits a core, in C++20.
//
// SPDX-License-Identifier: LGPL-2.1-or-later
#pragma once

#include <concepts>

namespace pto
{

template <typename T>
concept Element = std::floating_point<T> || std::integral<T>;

template <Element T, int N>
struct Tile
{
  T data[N];
};

template <Element T, int N>
void
TLOAD (Tile<T, N> &tile, const T *from)
{
  for (int i = 0; i < N; i++)
    tile.data[i] = from[i];
}

template <Element T, int N>
void
TADD (Tile<T, N> &out, const Tile<T, N> &x, const Tile<T, N> &y)
{
  for (int i = 0; i < N; i++)
    out.data[i] = x.data[i] + y.data[i];
}

template <Element T, int N>
void
TSTORE (T *to, const Tile<T, N> &tile)
{
  for (int i = 0; i < N; i++)
    to[i] = tile.data[i];
}

} // namespace pto
