#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Rank 1 ends as it is asked to, while the others wait for it or do something else.
int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1 && !strcmp(argv[1], "abort")) MPI_Abort(MPI_COMM_WORLD, 7);
  if (rank == 1 && !strcmp(argv[1], "exit")) _exit(3);
  if (!strcmp(argv[1], "exit")) {
    sleep(3);
    _exit(0);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
