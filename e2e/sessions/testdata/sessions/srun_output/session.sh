# Names of files: every pattern, both streams, append, one task's output alone.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n4 -J name -o log
say='echo out $SLURM_PROCID; echo err $SLURM_PROCID >&2'
srun -o a.%t bash -c "$say"; srun -o b.%j.%s.%t -e b.err bash -c "$say"; srun -o d.%J bash -c "$say"
srun -o e.%3t bash -c "$say"; srun -o f.%x.%u -n1 -N1 bash -c "$say"; srun -o 1 bash -c "$say"; srun -o none -e all bash -c "$say"
srun -l -o g bash -c "$say"; srun -o h.%% -n1 -N1 bash -c "$say"; srun -o h.%% --open-mode=append -n1 -N1 bash -c "$say"; srun -o 'i.\%t' -n1 -N1 bash -c "$say"
srun -n1 -N1 --output=k --error=k.err bash -c "$say"
X
sbatch job.sh; settle; for f in log a.* b.* d.* e.* f.* g h.* i.* k*; do sort -o $f $f; done; ls
# unordered: log
