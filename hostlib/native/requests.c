/* Request of hostlib/native/lane.py, and what is done with many of them. */
#include "lanes.h"

#include <structmember.h>

Request *weir_as_request(PyObject *object) {
    if (Py_IS_TYPE(object, &weir_request_type)) return (Request *)object;
    PyErr_Format(PyExc_TypeError, "%s is no request of this core", Py_TYPE(object)->tp_name);
    return NULL;
}

static PyObject *new_request(PyTypeObject *type, PyObject *arguments, PyObject *named) {
    static char *names[] = {"owner", "fragment", "flags", "tries", NULL};
    PyObject *owner;
    unsigned fragment, flags = 0, tries = 0;
    if (!PyArg_ParseTupleAndKeywords(arguments, named, "OI|II", names, &owner, &fragment, &flags, &tries)) return NULL;
    Request *request = (Request *)type->tp_alloc(type, 0);
    if (request == NULL) return NULL;
    request->owner = Py_NewRef(owner);
    request->fragment = fragment;
    request->flags = flags;
    request->tries = tries;
    return (PyObject *)request;
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(((Request *)self)->owner);
    Py_VISIT(((Request *)self)->lane);
    return 0;
}

static int clear(PyObject *self) {
    Py_CLEAR(((Request *)self)->owner);
    Py_CLEAR(((Request *)self)->lane);
    return 0;
}

static void dealloc(PyObject *self) { /* what is in flight, its lane holds */
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_TYPE(self)->tp_free(self);
}

int weir_append_requests(PyObject *requests, PyObject *owner, Py_ssize_t first, Py_ssize_t end) {
    for (Py_ssize_t fragment = first; fragment < end; fragment++) {
        Request *one = (Request *)weir_request_type.tp_alloc(&weir_request_type, 0);
        if (one == NULL) return -1;
        one->owner = Py_NewRef(owner);
        one->fragment = (unsigned)fragment;
        int failed = PyList_Append(requests, (PyObject *)one);
        Py_DECREF(one);
        if (failed) return -1;
    }
    return 0;
}

/* new_requests(owner, first, end) -> one for each fragment from `first` on and before `end` */
PyObject *weir_new_requests(PyObject *module, PyObject *arguments) {
    (void)module;
    PyObject *owner;
    Py_ssize_t first, end;
    if (!PyArg_ParseTuple(arguments, "Onn", &owner, &first, &end)) return NULL;
    if (first < 0 || end < first || end > MOST_FRAGMENTS)
        return PyErr_Format(PyExc_ValueError, "there are no fragments %zd to %zd", first, end);
    PyObject *requests = PyList_New(0);
    if (requests != NULL && weir_append_requests(requests, owner, first, end)) Py_CLEAR(requests);
    return requests;
}

/* drop(requests): nobody wants them any more */
PyObject *weir_drop(PyObject *module, PyObject *requests) {
    (void)module;
    if (!PyList_CheckExact(requests)) return PyErr_Format(PyExc_TypeError, "requests are a list");
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(requests); i++) {
        Request *request = weir_as_request(PyList_GET_ITEM(requests, i));
        if (request == NULL) return NULL;
        request->done = 1;
        weir_land(request);
    }
    Py_RETURN_NONE;
}

static PyMemberDef members[] = {
    {"owner", T_OBJECT, offsetof(Request, owner), READONLY, NULL},
    {"lane", T_OBJECT, offsetof(Request, lane), READONLY, NULL},
    {"fragment", T_UINT, offsetof(Request, fragment), READONLY, NULL},
    {"flags", T_UINT, offsetof(Request, flags), 0, NULL},
    {"tries", T_UINT, offsetof(Request, tries), 0, NULL},
    {"first_sent_s", T_DOUBLE, offsetof(Request, first_sent_s), 0, NULL},
    {"sent_s", T_DOUBLE, offsetof(Request, sent_s), READONLY, NULL},
    {"timeout_s", T_DOUBLE, offsetof(Request, timeout_s), READONLY, NULL},
    {"done", T_BOOL, offsetof(Request, done), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject weir_request_type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "weir_native.Request", .tp_basicsize = sizeof(Request),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, .tp_members = members, .tp_new = new_request,
    .tp_traverse = traverse, .tp_clear = clear, .tp_dealloc = dealloc,
};
