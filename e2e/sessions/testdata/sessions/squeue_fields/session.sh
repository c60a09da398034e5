# Every letter of -o whose value does not depend on the cluster, with its heading; widths, orders, errors.
sbatch -J runs -t 1:00:00 -N2 -n3 -c1 --mem-per-cpu=30 --comment hello -D /tmp -o /dev/null --wrap 'sleep 12'; sbatch -H -J held -p main,long -n 3 -c 2 --nice=5 --mem=100 -x n4 --exclusive -o /dev/null --wrap true
sbatch -H -s --ntasks-per-node=2 -N2 --mem=1G -w n1,n2 -o /dev/null --wrap true; sleep 2
for l in a A b B c C d D f F h H i I j J K k l m N O P q R s t T u v w W x X y Y z; do echo "== $l"; squeue -S i -o "%$l"; done
squeue -o '%.5i|%5i|%.30i|%30i|' -S i; squeue -h -O 'jobid:4,jobid:.8|,name:3' -S i; squeue -h -t r,pd -o %i -S i; squeue -h -o '%j %!' -S -i; echo "rc $?"; squeue -S '!' -j 1001 -h -o %j; echo "rc $?"; squeue --nosuch; echo "rc $?"; squeue -j abc; echo "rc $?"; squeue -h -j 99,1001 -o %i; echo "rc $?"; squeue -p nosuch; squeue -A nosuch -h; squeue -q nosuch -h; squeue -i abc; echo "rc $?"; squeue -t; echo "rc $?"
SQUEUE_FORMAT='%i %j' squeue -h -S i; SQUEUE_STATES=PD squeue -h -o %i -S i; SQUEUE_SORT=-i squeue -h -o %i; SQUEUE_PARTITION=long squeue -h -o %i; squeue -l -S i -p long | tail -n +2; squeue --start -p long
scancel 1001 1002; scancel 1003; settle; squeue -h -t all -o '%i %T %r' -S i
