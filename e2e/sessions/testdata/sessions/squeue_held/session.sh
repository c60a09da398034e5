# Where held jobs stand in the order of squeue, and their priorities.
sbatch -J first -n1 -t 5 -o /dev/null --wrap 'sleep 60' >/dev/null
for name in a b; do sbatch -J $name -N4 --exclusive -t 5 -o /dev/null --wrap true >/dev/null; done
sbatch -J h1 -H -n1 -t 5 -o /dev/null --wrap true >/dev/null
sbatch -J c -N4 --exclusive -t 5 -o /dev/null --wrap true >/dev/null
sbatch -J h2 -H -n1 -t 5 -o /dev/null --wrap true >/dev/null
sbatch -J d -N4 --exclusive -t 5 -o /dev/null --wrap true >/dev/null
sbatch -J later --begin=now+1hour -n1 -t 5 -o /dev/null --wrap true >/dev/null
sbatch -J h3 -H -p long -n1 -t 5 -o /dev/null --wrap true >/dev/null
sbatch -J h4 -H -a 1-4 -n1 -t 5 -o /dev/null --wrap true >/dev/null
sbatch -J e -p long -N4 --exclusive -t 5 -o /dev/null --wrap true >/dev/null
sleep 4
show() { echo "== $*"; squeue -h -o '%j %t %P' "$@"; }
zero() { squeue -h -t PD -o '%j %Q' -S j | awk '{print $1, ($2 == 0 ? "zero" : "more")}'; }
zero
show
show -S p
show -S -p
show -S -p,i
show -S p,j
show -S i
show -r
scontrol hold jobname=b
sleep 1
zero
show
scontrol release jobname=h2
sleep 1
show
scontrol release jobname=b
sleep 1
show
scontrol hold 1003; scontrol hold 1005
sleep 1
show
show -t PD -p main
scancel -u root
settle
