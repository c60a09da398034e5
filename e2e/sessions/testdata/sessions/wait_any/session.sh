# wait -n and wait of names, with steps behind the script's back.
cat > job.sh <<'X'
#!/bin/bash
srun -n1 --exact bash -c 'sleep 1.5; exit 5' & slow=$!
srun -n1 --exact bash -c 'exit 4' & fast=$!
wait -n; echo "first $?"; wait -n; echo "second $?"; wait -n; echo "none $?"
srun -n1 --exact bash -c 'sleep 1; exit 2' & srun -n1 --exact bash -c 'kill -9 $$' & wait -n 2>/dev/null; echo "killed $?"; wait; echo "rest $?"
for i in 1 2 3 4 5 6; do while [ $(jobs -r | wc -l) -ge 2 ]; do wait -n; done; srun -n1 --exact bash -c "echo $i > f$i" & done; wait; cat f?
sleep 0.1 & srun -n1 --exact sleep 1.5 & wait -n; echo "sleep $?"; wait; kill %1 2> /dev/null; echo $?
X
sbatch -W -n4 -o o job.sh > /dev/null; grep -v '^srun\|^slurmstepd' o
