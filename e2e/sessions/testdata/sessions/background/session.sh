# Steps behind the script's back.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n4
srun -n1 --exact bash -c 'sleep 0.3; echo a; exit 3' & a=$!
srun -n1 --exact bash -c 'sleep 0.6; echo b; exit 4' & b=$!
wait $a; echo "a $?"; wait $b; echo "b $?"
srun -n1 --exact true & srun -n1 --exact false & wait; echo "all $?"
codes=(); pids=(); for i in 1 2 3 4; do srun -n1 --exact bash -c "sleep 0.1; exit $i" 2>/dev/null & pids+=($!); done
for p in ${pids[@]}; do wait $p; codes+=($?); done; echo "codes ${codes[*]}"
srun -n4 --overlap sleep 0.1; echo "next $?"
X
sbatch -W -o o j.sh; grep -v '^srun\|^slurmstepd' o
