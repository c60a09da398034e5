# What scancel cancels by its filters, and how it ends.
for i in 1 2 3 4 5 6; do sbatch -J j$i -H -t 5 --wrap 'sleep 60' >/dev/null; done
sbatch -J r -n1 -t 5 -o /dev/null --wrap 'sleep 60' >/dev/null
sbatch -J arr -H -a 1-4 -t 5 --wrap 'sleep 60' >/dev/null
sbatch -J p -p long -H -t 5 --wrap 'sleep 60' >/dev/null
sleep 4
run() { echo "== $*"; scancel "$@" 2>/dev/null; echo "-> $?"; sleep 1; squeue -h -r -S i -o '%i %j %t' | tr '\n' ';'; echo; }
run
run 7777
run 7777 1001
run abc
run -n j2
run --name=j3 -t RUNNING
run -t PD -n j3
run -t bogus
run -p long -u root
run -p nope
run 1008_1
run '1008_[2-3]'
run 1008_9
run 1004,1005
run -Q 7777
run -v 1006
run -s BOGUS 1007
run -s 0 1007
run -s TERM 1006
run --me -t R
run 1007
run -w n1
run --bogus
scancel -u root
settle
