# Steps beside each other: & and wait, --exact, --exclusive, --overlap, one that waits for room, the exit code of each.
# unordered: stdout out
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n8 -c1 -o out
for i in 1 2 3 4; do srun -Q -n2 -N1 --exact --mem=10 bash -c "echo p$i; exit $i" & pids+=($!); done
for p in ${pids[@]}; do wait $p; echo "rc $?"; done
for i in 1 2; do srun -Q -n4 -N1 --exclusive --mem=10 bash -c 'sleep 1; echo $SLURM_PROCID' & done; wait
a=$SECONDS; for i in 1 2 3; do srun -Q -N2 -n2 sleep 1 & done; wait; [ $((SECONDS - a)) -ge 3 ] && echo "one after the other"
a=$SECONDS; for i in 1 2 3; do srun -Q --overlap -N2 -n2 sleep 1 & done; wait; [ $((SECONDS - a)) -lt 3 ] && echo "together"
a=$SECONDS; for i in 1 2 3 4 5 6 7 8; do srun -Q -c1 -n1 -N1 --mem=10 sleep 1 & done; wait; [ $((SECONDS - a)) -lt 5 ] && echo "together"
srun -Q -n8 bash -c 'sleep 2' & sleep 0.5; srun -I -n8 true; echo "rc $?"; wait; echo end
X
sbatch job.sh; settle; grep -v ^srun out
