# srun under timeout and in the background.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2
timeout 20 srun -n1 true; echo "rc $?"
timeout 20 srun -n1 bash -c 'exit 4'; echo "rc $?"
(srun -n1 --exact sleep 0.2; echo "sub $?")
srun -n1 --exact bash -c 'sleep 0.2; echo bg' & wait; echo "waited $?"
for i in 1 2 3 4; do srun -n1 --exact bash -c "sleep 0.1; echo $i > f$i" & done; wait; cat f?
seq 3 | xargs -P2 -I{} srun -n1 --exact bash -c 'echo {} > g{}'; cat g?
srun -n1 --overlap sleep 0.3 & srun -n1 --overlap echo beside; wait
srun -n1 nohup bash -c 'echo nohup'
time -p srun -n1 true 2> /dev/null; echo done
X
sbatch -W -o o -e /dev/null j.sh > /dev/null; cat o
