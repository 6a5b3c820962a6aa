/* read-only-list.c: how is a list shown that only its owner changes?
 *
 * SPDX-License-Identifier: LGPL-2.1-or-later
 */
#include "config.h"

#include "read-only-list.h"

typedef struct
{
  GObject parent_instance;

  GListModel *model; /* owned */
} PtoList;

typedef struct
{
  GObjectClass parent_class;
} PtoListClass;

static void pto_list_model_init (GListModelInterface *iface);

static GType pto_list_get_type (void);

G_DEFINE_FINAL_TYPE_WITH_CODE (PtoList, pto_list, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, pto_list_model_init))

static void
pto_list_finalize (GObject *object)
{
  PtoList *self = (PtoList *) object;

  g_clear_object (&self->model);
  G_OBJECT_CLASS (pto_list_parent_class)->finalize (object);
}

static void
pto_list_class_init (PtoListClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = pto_list_finalize;
}

static void
pto_list_init (PtoList *self)
{
}

static GType
get_item_type (GListModel *model)
{
  return g_list_model_get_item_type (((PtoList *) model)->model);
}

static guint
get_n_items (GListModel *model)
{
  return g_list_model_get_n_items (((PtoList *) model)->model);
}

static gpointer
get_item (GListModel *model, guint position)
{
  return g_list_model_get_item (((PtoList *) model)->model, position);
}

static void
pto_list_model_init (GListModelInterface *iface)
{
  iface->get_item_type = get_item_type;
  iface->get_n_items = get_n_items;
  iface->get_item = get_item;
}

GListModel *
pto_list_new (GListModel *model)
{
  PtoList *self = g_object_new (pto_list_get_type (), NULL);

  self->model = g_object_ref (model);
  g_signal_connect_object (model, "items-changed", G_CALLBACK (g_list_model_items_changed), self,
                           G_CONNECT_SWAPPED);
  return G_LIST_MODEL (self);
}
