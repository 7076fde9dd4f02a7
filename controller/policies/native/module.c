/* The compiled core of the policy: see controller/policies/native/__init__.py, which has its interface. */
#include <math.h>
#include "core.h"

#define POOL_LINK offsetof(Block, pool)
#define RECENT_LINK offsetof(Block, recent)

static void list_clear(List *list) {
    list->head = list->tail = NONE;
    list->total = 0;
}

static int core_init(PyObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"capacity_blocks", "capacity_slots", "shadows", "remembered", "hurdle", "prefix", NULL};
    Core *core = (Core *)self;
    long long blocks, slots;
    unsigned int remembered;
    int shadows, prefix;
    double hurdle;
    if (core->ids != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "made already");
        return -1;
    }
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "LLpIdp", names, &blocks, &slots, &shadows, &remembered,
                                     &hurdle, &prefix))
        return -1;
    if (blocks < 1 || slots < 0) {
        PyErr_SetString(PyExc_ValueError, "capacities that cannot be");
        return -1;
    }
    core->capacity_blocks = blocks;
    core->capacity_slots = slots;
    core->capacity = slots ? blocks * slots : blocks;
    core->experts = shadows ? EXPERTS : 1;
    core->remembered = remembered;
    core->hurdle = hurdle;
    core->is_prefix = prefix;
    core->free = NONE;
    weir_prepare_buckets(core);
    for (int step = 0; step < 2 * MAX_STEPS; step++)
        core->worth_of_step[step] = pow(2.0, (double)(step - MAX_STEPS) / STEPS_PER_OCTAVE);
    for (int i = 0; i < COLUMNS; i++) list_clear(&core->columns[i]);
    for (int i = 0; i < SETS; i++) list_clear(&core->sets[i]), core->order[i] = i;
    for (int i = 0; i < MQ_QUEUES; i++) list_clear(&core->mq_queues[i]);
    for (int i = 0; i < 4; i++) list_clear(&core->arc_lists[i]);
    list_clear(&core->mq_ghosts);
    list_clear(&core->lirs_stack);
    list_clear(&core->lirs_cold);
    list_clear(&core->lirs_ghosts);
    list_clear(&core->recent);
    int64_t least = LIRS_MIN_COLD_BLOCKS * (slots ? slots : 1);
    core->lirs_cold_room = core->capacity / LIRS_COLD > least ? core->capacity / LIRS_COLD : least;
    core->lirs_hot_room = core->capacity - core->lirs_cold_room;
    core->tracked = calloc(TRACKED_TICKS, sizeof *core->tracked);
    core->ids = PyDict_New();
    if (core->tracked == NULL) PyErr_NoMemory();
    return core->tracked == NULL || core->ids == NULL ? -1 : 0;
}

static void core_dealloc(PyObject *self) {
    Core *core = (Core *)self;
    for (uint32_t id = 0; id < core->made; id++) Py_XDECREF(core->blocks[id].key);
    free(core->blocks);
    free(core->tracked);
    free(core->seconds);
    free(core->steps);
    Py_XDECREF(core->ids);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Number of a key: NONE with or without an exception if it has none. */
static uint32_t find(Core *core, PyObject *key) {
    PyObject *id = PyDict_GetItemWithError(core->ids, key);
    return id == NULL ? NONE : (uint32_t)PyLong_AsUnsignedLong(id);
}

static uint32_t find_or_make(Core *core, PyObject *key) {
    uint32_t id = find(core, key);
    if (id != NONE || PyErr_Occurred()) return id;
    if (core->free != NONE) {
        id = core->free;
    } else {
        if (core->made == core->room) {
            uint32_t room = core->room ? 2 * core->room : 1024;
            Block *blocks = room < NONE / 2 ? realloc(core->blocks, room * sizeof *blocks) : NULL;
            if (blocks == NULL) return PyErr_NoMemory(), NONE;
            core->blocks = blocks;
            core->room = room;
        }
        id = core->made;
    }
    PyObject *number = PyLong_FromUnsignedLong(id);
    if (number == NULL) return NONE;
    int failed = PyDict_SetItem(core->ids, key, number);
    Py_DECREF(number);
    if (failed) return NONE;
    Block *block = &core->blocks[id];
    if (id == core->free)
        core->free = block->parent;
    else
        core->made++;
    memset(block, 0, sizeof *block);
    block->key = Py_NewRef(key);
    block->parent = block->last_child = NONE;
    return id;
}

static void set_fragments(Core *core, uint32_t id, long fragments) {
    Block *block = &core->blocks[id];
    if (block->fragments != fragments) weir_resize(core, id, (int32_t)fragments);
    if (block->mq_at || block->lirs_at || block->arc_at) return;
    int64_t part = fragments * core->capacity_blocks;
    block->size = !core->capacity_slots ? 1 : part > core->capacity_slots ? part : core->capacity_slots;
}

static void begin(Core *core, uint32_t id, uint32_t parent, int is_last) {
    Block *block = &core->blocks[id];
    if (parent != NONE) core->blocks[parent].children++;
    uint32_t before = block->parent;
    block->parent = parent;
    if (before != NONE) {
        core->blocks[before].children--;
        weir_free_if_unused(core, before);
    }
    block->is_known = 1;
    block->is_last = (uint8_t)is_last;
    block->count = block->served = 0;
    block->born = block->again = 0;
    block->gap_ticks = 0.0;
    block->lineage = 0;
    if (parent != NONE) {
        Block *grown_from = &core->blocks[parent];
        block->lineage = (uint8_t)weir_lineage_of(grown_from);
        if (++grown_from->born >= MAX_CHILDREN) grown_from->born /= 2, grown_from->again /= 2;
    }
    core->known++;
    list_add(core, &core->recent, RECENT_LINK, id);
}

/* Ask all experts; the holders, and whether it is in the pool. */
static PyObject *ask_all(Core *core, uint32_t id, uint32_t times) {
    Block *block = &core->blocks[id];
    int pool_bit = 1 << core->experts, everyone = pool_bit - 1;
    int had = block->holders | (block->is_in_pool ? pool_bit : 0);
    block->served = had & (block->parent == NONE ? everyone | pool_bit : core->blocks[block->parent].served);
    double saved_s = times * core->seconds[block->place];
    core->asked_s += saved_s;
    if (block->served & pool_bit) core->pool_s += saved_s;
    if (block->served & everyone) core->gains[block->served & everyone] += saved_s;
    weir_ask_learned(core, id, times);
    uint8_t holders = block->is_held ? LEARNED : 0;
    if (core->experts > 1) {
        weir_ask_mq(core, id);
        weir_ask_lirs(core, id);
        weir_ask_arc(core, id);
        holders |= MQ | LIRS | ARC;
    }
    weir_put(core, id, holders);
    return PyLong_FromLong(block->is_in_pool ? -1 : holders);
}

static PyObject *core_ask(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Core *core = (Core *)self;
    if (n != 6) return PyErr_Format(PyExc_TypeError, "ask takes 6 arguments");
    PyObject *key = args[0], *parent_key = args[1];
    long is_last = PyObject_IsTrue(args[2]), place = PyLong_AsLong(args[3]), fragments = PyLong_AsLong(args[4]);
    long times = PyLong_AsLong(args[5]);
    if (PyErr_Occurred()) return NULL;
    if (place < 0 || place >= core->places || fragments < 0 || fragments > INT32_MAX || times < 1 || times > INT32_MAX)
        return PyErr_Format(PyExc_ValueError, "a place, size or number of times that cannot be");
    uint32_t id = find(core, key), parent = NONE;
    if (id == NONE && PyErr_Occurred()) return NULL;
    if (id == NONE || !core->blocks[id].is_known) {
        if (parent_key != Py_None) {
            parent = find(core, parent_key);
            if (parent == NONE && PyErr_Occurred()) return NULL;
            if (parent == NONE || !core->blocks[parent].is_known || parent == id) return PyLong_FromLong(-2);
        }
        id = find_or_make(core, key);
        if (id == NONE) return NULL;
        set_fragments(core, id, fragments);
        begin(core, id, parent, (int)is_last);
    } else
        set_fragments(core, id, fragments);
    core->blocks[id].place = (uint32_t)place;
    return ask_all(core, id, (uint32_t)times);
}

static PyObject *core_hits(PyObject *self, PyObject *const *args, Py_ssize_t n) {
    Core *core = (Core *)self;
    if (n != 2) return PyErr_Format(PyExc_TypeError, "hits takes 2 arguments");
    long times = PyLong_AsLong(args[1]);
    uint32_t id = find(core, args[0]);
    if (PyErr_Occurred()) return NULL;
    if (times < 1 || times > INT32_MAX) return PyErr_Format(PyExc_ValueError, "times must be 1 or more");
    if (id == NONE || !core->blocks[id].is_known) return PyLong_FromLong(-2);
    return ask_all(core, id, (uint32_t)times);
}

static PyObject *core_end_tick(PyObject *self, PyObject *unused) {
    (void)unused;
    Core *core = (Core *)self;
    weir_end_tick(core);
    return PyLong_FromLongLong(core->reused);
}

static PyObject *core_take_gains(PyObject *self, PyObject *unused) {
    (void)unused;
    Core *core = (Core *)self;
    int sets = 1 << core->experts;
    PyObject *gains = PyList_New(sets);
    for (int set = 0; gains != NULL && set < sets; set++) {
        PyObject *gain = PyFloat_FromDouble(core->gains[set]);
        if (gain == NULL) Py_CLEAR(gains);
        else PyList_SET_ITEM(gains, set, gain), core->gains[set] = 0.0;
    }
    if (gains == NULL) return NULL;
    PyObject *taken = Py_BuildValue("(Ndd)", gains, core->pool_s, core->asked_s);
    core->pool_s = core->asked_s = 0.0;
    return taken;
}

static PyObject *core_set_order(PyObject *self, PyObject *order) {
    Core *core = (Core *)self;
    if (!PyList_Check(order) || PyList_GET_SIZE(order) != 1 << core->experts)
        return PyErr_Format(PyExc_ValueError, "an order has every set of experts once");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(order); i++) {
        long set = PyLong_AsLong(PyList_GET_ITEM(order, i));
        if (set < 0 || set >= 1 << core->experts) return PyErr_Format(PyExc_ValueError, "no such set of experts");
        core->order[i] = (int)set;
    }
    Py_RETURN_NONE;
}

static PyObject *core_set_worths(PyObject *self, PyObject *args) {
    Core *core = (Core *)self;
    PyObject *seconds, *steps;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &seconds, &PyList_Type, &steps)) return NULL;
    Py_ssize_t places = PyList_GET_SIZE(seconds);
    if (places < core->places || places != PyList_GET_SIZE(steps))
        return PyErr_Format(PyExc_ValueError, "places are added, not taken away");
    if (places > core->places) {
        double *more = realloc(core->seconds, (size_t)places * sizeof *more);
        if (more == NULL) return PyErr_NoMemory();
        core->seconds = more;
        int32_t *more_steps = realloc(core->steps, (size_t)places * sizeof *more_steps);
        if (more_steps == NULL) return PyErr_NoMemory();
        core->steps = more_steps;
        core->places = places;
    }
    for (Py_ssize_t i = 0; i < places; i++) {
        core->seconds[i] = PyFloat_AsDouble(PyList_GET_ITEM(seconds, i));
        core->steps[i] = (int32_t)PyLong_AsLong(PyList_GET_ITEM(steps, i));
    }
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *view(Core *core, double (*table)[BUCKETS]) {
    (void)core;
    return PyMemoryView_FromMemory((char *)table, sizeof(double) * CLASSES * BUCKETS, PyBUF_WRITE);
}

/* reuses, exposure, index, chance: as bytes, valid as long as the core is. */
static PyObject *core_tables(PyObject *self, PyObject *unused) {
    (void)unused;
    Core *core = (Core *)self;
    return Py_BuildValue("(NNNN)", view(core, core->reuses), view(core, core->exposure), view(core, core->index),
                         view(core, core->chance));
}

static PyObject *core_enter(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = find_or_make(core, key);
    if (id == NONE) return NULL;
    Block *block = &core->blocks[id];
    if (!block->is_in_pool) {
        if (!block->fragments) set_fragments(core, id, 1);
        block->is_in_pool = 1;
        core->pool_blocks++;
        list_add(core, &core->sets[block->holders], POOL_LINK, id);
    }
    Py_RETURN_NONE;
}

static PyObject *core_leave(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = find(core, key);
    if (id == NONE || !core->blocks[id].is_in_pool) {
        if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
        return NULL;
    }
    list_cut(core, &core->sets[core->blocks[id].holders], POOL_LINK, id);
    core->blocks[id].is_in_pool = 0;
    core->pool_blocks--;
    weir_free_if_unused(core, id);
    Py_RETURN_NONE;
}

/* The first so many blocks of the pool by votes, each with its holders. */
static PyObject *core_least(PyObject *self, PyObject *most) {
    Core *core = (Core *)self;
    long left = PyLong_AsLong(most);
    if (PyErr_Occurred()) return NULL;
    PyObject *found = PyList_New(0);
    for (int i = 0; found != NULL && i < 1 << core->experts; i++)
        for (uint32_t id = core->sets[core->order[i]].head; id != NONE && left > 0; left--) {
            PyObject *pair = Py_BuildValue("(Oi)", core->blocks[id].key, core->order[i]);
            if (pair == NULL || PyList_Append(found, pair)) {
                Py_XDECREF(pair);
                Py_DECREF(found);
                return NULL;
            }
            Py_DECREF(pair);
            id = core->blocks[id].pool.behind;
        }
    return found;
}

/* Of some blocks what an expert does not hold, of that the first of the least value; 0 where not known. */
static PyObject *core_cheapest_of(PyObject *self, PyObject *args) {
    Core *core = (Core *)self;
    PyObject *keys, *best = NULL;
    int expert, best_held = 0;
    double best_value = 0.0;
    if (!PyArg_ParseTuple(args, "O!i", &PyList_Type, &keys, &expert)) return NULL;
    if (expert < 0 || expert >= core->experts) return PyErr_Format(PyExc_ValueError, "no such expert");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys); i++) {
        PyObject *key = PyList_GET_ITEM(keys, i);
        uint32_t id = find(core, key);
        if (id == NONE && PyErr_Occurred()) return NULL;
        int held = id == NONE ? 0 : core->blocks[id].holders >> expert & 1;
        double value = id == NONE || !core->blocks[id].is_known ? 0.0 : weir_value(core, id);
        if (best == NULL || held < best_held || (held == best_held && value < best_value))
            best = key, best_held = held, best_value = value;
    }
    if (best == NULL) Py_RETURN_NONE;
    return Py_NewRef(best);
}

static PyObject *core_holders(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = find(core, key);
    if (id == NONE && PyErr_Occurred()) return NULL;
    return PyLong_FromLong(id == NONE ? 0 : core->blocks[id].holders);
}

static PyObject *core_chance(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = find(core, key);
    if (id == NONE && PyErr_Occurred()) return NULL;
    if (id == NONE || !core->blocks[id].is_known) Py_RETURN_NONE;
    const Block *block = &core->blocks[id];
    return PyFloat_FromDouble(core->chance[block->kind][bucket(core, core->tick - block->tick)]);
}

/* Times asked for, ticks since, place, value, key of the parent, whether that is held; None if not known. */
static PyObject *core_facts(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = find(core, key);
    if (id == NONE && PyErr_Occurred()) return NULL;
    if (id == NONE || !core->blocks[id].is_known) Py_RETURN_NONE;
    const Block *block = &core->blocks[id];
    const Block *parent = block->parent == NONE ? NULL : &core->blocks[block->parent];
    return Py_BuildValue("(IiIdOO)", block->count, core->tick - block->tick, block->place, weir_value(core, id),
                         parent == NULL ? Py_None : parent->key,
                         parent != NULL && parent->is_held ? Py_True : Py_False);
}

static PyObject *core_cheapest(PyObject *self, PyObject *unused) {
    (void)unused;
    Core *core = (Core *)self;
    double value = 0.0;
    if (weir_fits(core, 1) || weir_cheapest(core, &value) == NONE) Py_RETURN_NONE;
    return PyFloat_FromDouble(value);
}

static PyObject *core_known(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((Core *)self)->known);
}

/* Numbers given out; a test asks. */
static PyObject *core_made(PyObject *self, PyObject *unused) {
    (void)unused;
    return PyLong_FromUnsignedLong(((Core *)self)->made);
}

static int core_contains(PyObject *self, PyObject *key) {
    Core *core = (Core *)self;
    uint32_t id = find(core, key);
    if (id == NONE) return PyErr_Occurred() ? -1 : 0;
    return core->blocks[id].is_in_pool;
}

static Py_ssize_t core_length(PyObject *self) { return (Py_ssize_t)((Core *)self)->pool_blocks; }

static PyMethodDef methods[] = {
    {"ask", (PyCFunction)(void (*)(void))core_ask, METH_FASTCALL, NULL},
    {"hits", (PyCFunction)(void (*)(void))core_hits, METH_FASTCALL, NULL},
    {"end_tick", core_end_tick, METH_NOARGS, NULL},
    {"take_gains", core_take_gains, METH_NOARGS, NULL},
    {"set_order", core_set_order, METH_O, NULL},
    {"set_worths", core_set_worths, METH_VARARGS, NULL},
    {"tables", core_tables, METH_NOARGS, NULL},
    {"enter", core_enter, METH_O, NULL},
    {"leave", core_leave, METH_O, NULL},
    {"least", core_least, METH_O, NULL},
    {"cheapest_of", core_cheapest_of, METH_VARARGS, NULL},
    {"holders", core_holders, METH_O, NULL},
    {"chance", core_chance, METH_O, NULL},
    {"facts", core_facts, METH_O, NULL},
    {"cheapest_value", core_cheapest, METH_NOARGS, NULL},
    {"known", core_known, METH_NOARGS, NULL},
    {"made", core_made, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, PyType_GenericNew}, {Py_tp_init, core_init},        {Py_tp_dealloc, core_dealloc},
    {Py_tp_methods, methods},       {Py_sq_contains, core_contains}, {Py_sq_length, core_length},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "weir_policy.Core", .basicsize = sizeof(Core), .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, .slots = slots,
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "weir_policy", .m_size = -1};

PyMODINIT_FUNC PyInit_weir_policy(void) {
    PyObject *module = PyModule_Create(&definition), *type = module == NULL ? NULL : PyType_FromSpec(&spec);
    if (type == NULL || PyModule_AddObject(module, "Core", type)) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
