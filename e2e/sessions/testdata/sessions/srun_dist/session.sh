# Where tasks go: block, cyclic, plane, the second part, more tasks than CPUs, --ntasks-per-node, uneven counts.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N3 -n9 -o out
d() { echo "$* : $(srun -Q "$@" bash -c 'echo $SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID' 2>/dev/null | sort -n | tr '\n' ' ') rc $?"; }
d; d -n3; d -n4; d -n9; d -n10; d -n12; d -m block; d -m cyclic; d -m plane=2; d -m plane=3; d -m plane=4; d -m block:cyclic; d -m cyclic:block; d -m block:block:cyclic; d -m '*'; d -m block,pack; d -m block,nopack; d -m cyclic,Pack
d -N2 -n5; d -N2 -n5 -m cyclic; d -N3 -n5 -m cyclic; d -O -n15; d -O -n15 -m cyclic; d --ntasks-per-node=2 -N3 -n6; d --ntasks-per-node=1 -n3; d --ntasks-per-node=3 -N2 -n6; d -c2 -n6; d -c2 -n4 -m cyclic; d -c4 -n3; d -m arbitrary -n3
X
sbatch job.sh; settle; cat out
