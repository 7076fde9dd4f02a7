/* Requests and lanes: hostlib/native/lane.py says what each field and function is. */
#ifndef WEIR_LANES_H
#define WEIR_LANES_H

#include "layout.h"

enum { UNSHARED = 2 };
#define WEIR_SHRINK 0.2
#define WEIR_POOL "pool"

typedef struct {
    PyObject_HEAD
    double smoothed_s, variance_s, heard_s, first_heard_s;
    char learned, was_heard; /* was_heard: whether first_heard_s is known */
} RoundTrips;

typedef struct {
    double initial, least, most, most_open, target_backlog_ms, merged_backlog_ms, idle_s; /* options */
    double window, heard_s;
    long long shared;
    int opening;
} FlowWindow;

typedef struct Lane Lane;
typedef struct Request Request;

struct Request {
    PyObject_HEAD
    PyObject *owner;
    PyObject *lane; /* a Lane, or NULL */
    unsigned fragment, flags, tries;
    double first_sent_s, sent_s, timeout_s;
    char done;
    /* The requests in flight in a lane are a list, in the order in which they were sent. */
    Lane *flies_in; /* NULL if it is not in flight */
    Request *before, *behind;
};

struct Lane {
    PyObject_HEAD
    PyObject *home;
    RoundTrips *trips;
    FlowWindow flow;
    double initial_timeout_s, min_timeout_s, max_timeout_s, deadline_s; /* options */
    double halved_s, backlog_s;
    int is_pool;
    Request **waiting; /* a ring */
    Py_ssize_t first, count, capacity;
    Request *oldest, *latest; /* in flight */
    Py_ssize_t in_flight;
};

extern PyTypeObject weir_request_type, weir_round_trips_type, weir_lane_type;

int weir_begin_flow(FlowWindow *flow, PyObject *options);
long long weir_allowed(const FlowWindow *flow);
/* A fragment in flight is answered; `backlog_ms` below 0: by someone nearer than the home. */
void weir_answered(FlowWindow *flow, double now_s, double backlog_ms, int merged);
void weir_feel(FlowWindow *flow, double backlog_ms);
void weir_halve(FlowWindow *flow);
int weir_restart(FlowWindow *flow, double now_s);
void weir_forget(RoundTrips *trips);
void weir_measure(RoundTrips *trips, double sent_s, double now_s);

/* A number that an object has under a public name; -1 with an exception, which the caller looks for once behind
   several. */
double weir_get_number(PyObject *object, const char *name);
/* The object as a request; NULL with an exception. */
Request *weir_as_request(PyObject *object);
/* Append requests for fragments from `first` on and before `end` to a list; 0, or -1 with an exception. */
int weir_append_requests(PyObject *requests, PyObject *owner, Py_ssize_t first, Py_ssize_t end);
void weir_land(Request *request); /* in flight no more */
/* The request is answered, as Lane.settle; 0 if it is in no lane. */
int weir_settle(Request *request, double now_s, double backlog_ms, int merged);

#endif
