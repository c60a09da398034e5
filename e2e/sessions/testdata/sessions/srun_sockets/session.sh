# Options of srun that speak of sockets, cores and threads.
cat > job.sh <<'X'
#!/bin/bash
r() { echo "$* : $(timeout 20 srun -Q "$@" bash -c 'env | grep -E "^SLURM_(THREADS_PER_CORE|CORES_PER_SOCKET|SOCKETS|NTASKS_PER|HINT|NTASKS=|CPUS_PER_TASK|DISTRIBUTION)" | sort | tr "\n" " "' 2>/dev/null | sort | uniq -c | tr -s ' \n' ' ')"; }
for o in --cores-per-socket=1 --cores-per-socket=4 --sockets-per-node=1 --threads-per-core=1 "-B 1" "-B 1:2:1" "-B 1:*" --extra-node-info=1 --ntasks-per-socket=1 --ntasks-per-core=1 --ntasks-per-socket=2 --hint=memory_bound --hint=compute_bound --hint=nomultithread; do r $o; done
for o in --cores-per-socket=8 --cores-per-socket=x --sockets-per-node=9 --sockets-per-node=0 "-B 9" "-B x" --ntasks-per-socket=x --core-spec=1 -S1 --thread-spec=1; do r $o; done
X
sbatch -W -N2 -n4 -o out job.sh > /dev/null; cat out
sbatch -W -n2 -c2 -o out job.sh > /dev/null; cat out
