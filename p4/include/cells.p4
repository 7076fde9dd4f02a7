// The cells of a value. p4c's widest type has 2048 bits, so a value is a row of cells of 256 bytes, and the last
// may have half of that. This file alone knows how many there are: the others say EACH_CELL(X), which is X(n, type)
// for each cell n in turn.
#ifndef WEIR_CELLS_P4
#define WEIR_CELLS_P4

typedef bit<2048> value_cell_t;
typedef bit<1024> half_cell_t;

#define CELLS_0_TO_1(X) X(0, value_cell_t) X(1, value_cell_t)
#define CELLS_2_TO_4(X) X(2, value_cell_t) X(3, value_cell_t) X(4, value_cell_t)
#define CELLS_5_TO_15(X) X(5, value_cell_t) X(6, value_cell_t) X(7, value_cell_t) X(8, value_cell_t) \
    X(9, value_cell_t) X(10, value_cell_t) X(11, value_cell_t) X(12, value_cell_t) X(13, value_cell_t) \
    X(14, value_cell_t) X(15, value_cell_t)
#define CELLS_16_TO_31(X) X(16, value_cell_t) X(17, value_cell_t) X(18, value_cell_t) X(19, value_cell_t) \
    X(20, value_cell_t) X(21, value_cell_t) X(22, value_cell_t) X(23, value_cell_t) X(24, value_cell_t) \
    X(25, value_cell_t) X(26, value_cell_t) X(27, value_cell_t) X(28, value_cell_t) X(29, value_cell_t) \
    X(30, value_cell_t) X(31, value_cell_t)

#if VALUE_SIZE == 512
#define EACH_CELL(X) CELLS_0_TO_1(X)
#elif VALUE_SIZE == 1408
#define EACH_CELL(X) CELLS_0_TO_1(X) CELLS_2_TO_4(X) X(5, half_cell_t)
#elif VALUE_SIZE == 8192
#define EACH_CELL(X) CELLS_0_TO_1(X) CELLS_2_TO_4(X) CELLS_5_TO_15(X) CELLS_16_TO_31(X)
#else
#error VALUE_SIZE must be 512, 1408 or 8192
#endif

#endif
