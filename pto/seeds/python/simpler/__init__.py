# __init__.py: the package that programs written after seed 003 import from; libpto answers.
# SPDX-License-Identifier: LGPL-2.1-or-later
