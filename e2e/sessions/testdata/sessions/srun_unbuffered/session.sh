# -u: standard output of tasks is a terminal, so programs write each line at once; what comes out is the same.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n2 -o out
srun -u bash -c 'test -t 0 && echo in; test -t 1 && echo out; test -t 2 && echo err' | sort; srun -n1 -N1 -u printf 'a\nb\r\n\tc' | od -c; srun -n1 -N1 -u bash -c 'seq 30000' | md5sum; SLURM_UNBUFFEREDIO=1 srun -n1 -N1 bash -c 'test -t 1 && echo out'
srun -n1 -N1 -u bash -c 'echo e >&2; exit 4' 2> /dev/null; echo "rc $?"; echo hello | srun -n1 -N1 -u cat; srun -n2 -l -u bash -c 'test -t 1 && echo out' | sort; srun -n1 -N1 -u -o file bash -c 'test -t 1 && echo out'; cat file; srun -n1 -N1 -u bash -c 'stty size < /dev/fd/1'; srun -n1 -N1 -u sh -c 'tty < /dev/fd/1 > /dev/null; echo $?'
X
sbatch job.sh; settle; cat out
