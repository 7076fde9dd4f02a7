/* The core's methods, by the file that has them. */
#ifndef WEIR_POLICY_METHODS_H
#define WEIR_POLICY_METHODS_H

#include "core.h"

/* asked.c */
PyObject *weir_core_ask(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *weir_core_hits(PyObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *weir_core_give_up(PyObject *self, PyObject *key);

/* pool.c */
PyObject *weir_core_enter(PyObject *self, PyObject *key);
PyObject *weir_core_leave(PyObject *self, PyObject *key);
PyObject *weir_core_least(PyObject *self, PyObject *most);
int weir_core_contains(PyObject *self, PyObject *key);
Py_ssize_t weir_core_length(PyObject *self);

/* facts.c */
PyObject *weir_core_is_wanted(PyObject *self, PyObject *key);
PyObject *weir_core_chance(PyObject *self, PyObject *key);
PyObject *weir_core_facts(PyObject *self, PyObject *key);
PyObject *weir_core_cheapest(PyObject *self, PyObject *unused);
PyObject *weir_core_known(PyObject *self, PyObject *unused);
PyObject *weir_core_made(PyObject *self, PyObject *unused);

#endif
