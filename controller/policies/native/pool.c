/* Which experts hold what, the pool by that, and the numbers of blocks. */
#include "core.h"

#define POOL_LINK offsetof(Block, pool)

void weir_put(Core *core, uint32_t id, uint8_t holders) {
    Block *block = &core->blocks[id];
    if (block->is_in_pool) {
        list_cut(core, &core->sets[block->holders], POOL_LINK, id);
        list_add(core, &core->sets[holders], POOL_LINK, id);
    }
    block->holders = holders;
}

void weir_let_go(Core *core, uint32_t id, int bit) {
    weir_put(core, id, core->blocks[id].holders & (uint8_t)~bit);
    weir_free_if_unused(core, id);
}

/* A number is free once nothing is known of its block: then that of its parent may be, too. */
void weir_free_if_unused(Core *core, uint32_t id) {
    while (id != NONE) {
        Block *block = &core->blocks[id];
        if (block->is_known || block->is_in_pool || block->holders || block->children || block->mq_at ||
            block->lirs_at || block->arc_at)
            return;
        PyObject *key = block->key;
        uint32_t parent = block->parent;
        if (PyDict_DelItem(core->ids, key)) PyErr_Clear();
        block->key = NULL;
        block->parent = core->free;
        core->free = id;
        Py_DECREF(key);
        if (parent == NONE) return;
        core->blocks[parent].children--;
        id = parent;
    }
}
