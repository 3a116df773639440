/* bench/mpi_allreduce.c - times MPI's own allreduce, as bench/collectives.c times ours.
 *
 *   mpirun -n N mpi_allreduce [--bytes N] [--calls N] [--rounds N] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MAX = 100 };

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    long   bytes = 8, calls = 1, rounds = 5;
    int    rank;
    double seconds[ROUNDS_MAX];
    for (int i = 1; i + 1 < argc; i += 2) {
        long *number = strcmp(argv[i], "--bytes") == 0 ? &bytes : strcmp(argv[i], "--calls") == 0 ? &calls : &rounds;
        *number = strtol(argv[i + 1], NULL, 10);
    }
    if (bytes < 4 || calls < 1 || rounds < 1 || rounds > ROUNDS_MAX) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *values = aligned_alloc(64, ((size_t)bytes + 63) / 64 * 64);
    if (values == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(values, 0, (size_t)bytes);
    const int n = (int)(bytes / (long)sizeof *values);
    MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    for (long round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (long i = 0; i < calls; i++) MPI_Allreduce(MPI_IN_PLACE, values, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        seconds[round] = (MPI_Wtime() - start) / (double)calls;
    }
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_size);
    if (rank == 0) printf("{\"seconds\":%.9f}\n", seconds[rounds / 2]);
    free(values);
    MPI_Finalize();
    return 0;
}
