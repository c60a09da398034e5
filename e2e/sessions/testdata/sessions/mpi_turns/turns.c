// A ring, sums, and a solver that exchanges its halo, each with a result that is known.
// usage: turns [ROUNDS [quit]]   `quit`: ends without MPI_Finalize, in which MPICH 4.0.2 may wait forever on UCX over TCP
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kCells = 64 };

int main(int argc, char** argv) {
  int rank, size;
  const int rounds = argc > 1 ? atoi(argv[1]) : 100;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;

  // 1. A number goes around, and each task adds one.
  long token = 0;
  for (int round = 0; round < rounds; ++round) {
    if (rank > 0) MPI_Recv(&token, 1, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    ++token;
    MPI_Send(&token, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&token, 1, MPI_LONG, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }

  // 2. The sum of all ranks, again and again.
  long wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    long mine = rank + round, sum = 0;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (sum != (long)size * (size - 1) / 2 + (long)size * round) ++wrong;
  }

  // 3. Heat in a rod, 0 at its beginning and 1 at its end: what a task has goes over to its
  // neighbors. The same as one task alone has.
  const int all = kCells * size;
  double *cells = calloc(kCells + 2, sizeof *cells), *fresh = calloc(kCells + 2, sizeof *fresh);
  double *rod = calloc(all + 2, sizeof *rod), *other = calloc(all + 2, sizeof *other);
  const int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL;
  for (int round = 0; round < rounds; ++round) {
    MPI_Sendrecv(&cells[1], 1, MPI_DOUBLE, left, 1, &cells[kCells + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&cells[kCells], 1, MPI_DOUBLE, right, 2, &cells[0], 1, MPI_DOUBLE, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == size - 1) cells[kCells + 1] = 1;
    for (int i = 1; i <= kCells; ++i) fresh[i] = cells[i] + 0.25 * (cells[i - 1] - 2 * cells[i] + cells[i + 1]);
    double* swap = cells; cells = fresh; fresh = swap;
    rod[all + 1] = 1;
    for (int i = 1; i <= all; ++i) other[i] = rod[i] + 0.25 * (rod[i - 1] - 2 * rod[i] + rod[i + 1]);
    swap = rod; rod = other; other = swap;
  }
  double off = 0, most = 0;
  for (int i = 1; i <= kCells; ++i) off = fmax(off, fabs(cells[i] - rod[rank * kCells + i]));
  MPI_Reduce(&off, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  long all_wrong = 0;
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%d tasks: ring %ld, wrong sums %ld, the solver is off by %g\n", size, token, all_wrong, most);
  if (argc > 2) {
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    _exit(0);
  }
  MPI_Finalize();
  return 0;
}
