// error v1model.p4: this V1MODEL_VERSION is unknown: it must be from 20180101 to 20200408
#define V1MODEL_VERSION 20990101
#include <v1model.p4>
