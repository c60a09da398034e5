# -m pack and nopack alone and with others, where nodes have different room.
cat > job.sh <<'X'
#!/bin/bash
d() { echo "$* : $(timeout 20 srun -Q "$@" bash -c 'echo $SLURM_PROCID@$SLURM_NODEID.$SLURM_LOCALID $SLURM_DISTRIBUTION' 2>/dev/null | sort -n | tr '\n' ' ')"; }
echo "$SLURM_JOB_CPUS_PER_NODE ${SLURM_DISTRIBUTION:-none}"
for m in pack nopack block,pack pack,block block:block,pack '*,pack' '*' cyclic,pack plane=2,pack; do d -m "$m"; d -m "$m" -n2; d -m "$m" -n5; done
d -m pack -N2 -n4; d -m '*,pack' -N2 -n3; d -m nopack -N2 -n4
X
for o in "-N2 -n5" "-N3 -n7" "-N3 -n6 -m pack" "-N3 -n6 -m nopack"; do sbatch -W $o -o out job.sh > /dev/null; echo "== $o"; cat out; done
