# -N of a step as a range, in jobs of several shapes.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(srun -Q "$@" bash -c 'echo $SLURM_NODEID' 2>/dev/null | sort | uniq -c | tr -s ' \n' ' ')"; }
eval "$1"
X
all='d -N1-2 -n1; d -N1-2 -n2; d -N2-3 -n3; d -N2-3 -n2; d -N1-4 -n4; d -N1-3 -n2; d -N2-2 -n2; d -N2-9 -n2; d -N1-2 -w n2 -n1; d -N1-2 -w n2,n3 -n2; d -N4-2 -n4; d -N1- -n1; d -N1k -n1; d -N2-3 -n2 --exact'
sbatch -N4 --ntasks-per-node=1 -o a job.sh "$all; d -N3-4"; settle; sbatch -N3 -n3 -c2 -o b job.sh "$all"; settle; sbatch -N3 -n12 -o c job.sh "$all; d -N1-2 -n5; d -N1-3 -n5; d -N1-3 -n8; d -N2-3 -n5; d -N1-3 -n9; d -N1-3"; settle; sbatch -N4 -n8 -o d job.sh "$all; d -N1-2 -n5; d -N1-3 -n5; d -N1-4 -n7"; settle; cat a b c d
