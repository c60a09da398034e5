# --mpi=pmi2 steps of MPICH and mpiexec in one script, by srun options and by SLURM_MPI_TYPE; errors.
# needs: mpicc.mpich mpiexec.mpich
# unordered: stdout
cat > hello.c <<'X'
#include <mpi.h>
#include <stdio.h>
int main(int c, char **v) { int r, n, s; MPI_Init(&c, &v); MPI_Comm_rank(MPI_COMM_WORLD, &r); MPI_Comm_size(MPI_COMM_WORLD, &n); MPI_Allreduce(&r, &s, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); printf("%d of %d sum %d\n", r, n, s); MPI_Finalize(); return c > 1 && r == n - 1 ? 5 : 0; }
X
mpicc.mpich hello.c -o hello || exit 1
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n4 -o out
srun --mpi=pmi2 ./hello | sort; SLURM_MPI_TYPE=pmi2 srun -n3 ./hello | sort; srun --mpi=pmi2 -n2 -N1 ./hello | sort; srun --mpi=pmi2 ./hello x > /dev/null 2>&1; echo "rc $?"; srun --mpi=pmi2 --multi-prog prog | sort
mpiexec.mpich ./hello | sort; mpiexec.mpich -n 3 ./hello | sort; srun --mpi=none -n2 ./hello | sort
X
echo '0-3 ./hello' > prog; sbatch job.sh; settle; cat out
