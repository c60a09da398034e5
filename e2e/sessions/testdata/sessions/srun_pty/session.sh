# --pty: the task has a terminal, of the size that the caller's has; without one it is an ordinary step.
# needs: script
# compare: stdout
t() { sleep 6 | script -qec "$1" /dev/null | tr -d '\r'; }
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n2 -o out
srun --pty bash -c 'test -t 0 && echo in; echo $SLURM_NTASKS $SLURM_PROCID $SLURM_NNODES' 2>/dev/null | sort; srun --pty bash -c 'exit 5' 2>/dev/null; echo "rc $?"
srun -N2 -n2 --pty bash -c 'test -t 0 && echo $SLURM_PROCID; echo rank $SLURM_PROCID' 2>/dev/null | sort; echo text | srun --pty bash -c 'read x; echo "read $x"' 2>/dev/null
X
sbatch job.sh; settle; cat out
srun -Q --pty bash -c 'test -t 0 && echo in; exit 3' 2>/dev/null; echo "rc $?"
t 'stty rows 33 cols 99; srun -Q --pty stty size'; t 'srun -Q --pty bash -c "tty > /dev/null && echo a terminal; echo err >&2; exit 4" 2>/dev/null; echo "rc $?"'
t 'srun -Q -n3 --pty bash -c "echo \$SLURM_PROCID of \$SLURM_NTASKS; test -t 1 && echo terminal"'; (sleep 2; echo 'echo hello $((6*7))'; sleep 1; echo 'exit 6') | script -qec 'srun -Q --pty bash --norc --noprofile -c "stty -echo; read a; eval \"\$a\"; read b; eval \"\$b\""; echo "rc $?"' /dev/null | tr -d '\r'
(sleep 2; printf '\003'; sleep 3) | script -qec 'srun -Q --pty bash -c "trap \"echo got INT; exit 7\" INT; sleep 20"; echo "rc $?"' /dev/null | tr -d '\r' | sed 's/\^C//'
