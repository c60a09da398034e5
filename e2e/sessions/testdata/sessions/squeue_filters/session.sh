# Filters of squeue that are empty, said twice, in other case, or name what is not there.
sbatch -J a -N1 -n1 -t 5 -o /dev/null --wrap 'sleep 60' >/dev/null
sbatch -J b -N2 -t 10 -o /dev/null --wrap 'sleep 60' >/dev/null
sbatch -J c -p long -N4 --exclusive -t 20 --wrap 'sleep 60' >/dev/null
sbatch -J d -H -t 1:30:00 --wrap 'sleep 60' >/dev/null
sbatch -J 'with space' -H --wrap 'sleep 60' >/dev/null
sleep 5
run() { echo "== $*"; squeue -h -S i -o '%i|%j|%t' "$@" 2>/dev/null; echo "-> $?"; }
run -t running,pd
run -t R -t PD
run -t bogus
run -t all
run -t ''
run -p main,long
run -p LONG
run -p nope
run -p ''
run -p main -p long
run -n a,c
run -n 'with space'
run -n ''
run -n a -n d
run -u root
run -u nosuchuser
run -u ''
run -w n1
run -w 'n[1-2]'
run -w n9
run -w n1 -w n4
run -j 1001,1003
run -j 1001,7777
run -j 7777
run -j abc
run -j 1001,
run -j 1001.0
run -A none
run -q normal
run --name=a --states=PD
run -o
run --bogus
run -i 0
run -i x
run --start
run --start -t R
run --start -t all
squeue -h -l | grep -c .
squeue -l | wc -l
scancel -u root
settle
