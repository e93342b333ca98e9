void matmul(void) {}
