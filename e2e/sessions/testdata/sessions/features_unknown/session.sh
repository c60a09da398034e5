# Features that no node has.
run() { echo "== $*"; "$@" 2>/dev/null | sed 's/[0-9][0-9][0-9][0-9]$/ID/'; echo "-> ${PIPESTATUS[0]}"; }
run sbatch -C nosuch -t 5 -o /dev/null --wrap true
run sbatch -C 'other&nosuch' -t 5 -o /dev/null --wrap true
run sbatch -C 'other|nosuch' -t 5 -o /dev/null --wrap true
run sbatch -C '[other|nosuch]' -N2 -t 5 -o /dev/null --wrap true
run sbatch -C '[other*1&nosuch*1]' -N2 -t 5 -o /dev/null --wrap true
run sbatch --test-only -C nosuch -t 5 -o /dev/null --wrap true
run srun -C nosuch -t 5 true
run salloc -C nosuch -t 5 true
id=$(sbatch --parsable -H -t 5 -o /dev/null --wrap true)
scontrol update jobid=$id Features=nosuch 2>/dev/null; echo "-> $?"
scontrol show job $id | grep -o 'Features=[^ ]*'
scontrol update jobid=$id Features='other&nosuch' 2>/dev/null; echo "-> $?"
scontrol update jobid=$id Features= 2>/dev/null; echo "-> $?"
scontrol show job $id | grep -o 'Features=[^ ]*'
scancel $id
settle
squeue -h -t all -S i -o '%t %f'
