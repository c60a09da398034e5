# Widths, sides, suffixes and text around fields.
sbatch -J averylongnameofajob -N2 -n4 -t 1-02:03:04 --comment 'a comment' -H --wrap 'sleep 60' >/dev/null
sbatch -J b -N3 -n12 -t 30 -w 'n[2-4]' -o /dev/null --wrap 'sleep 60' >/dev/null
sbatch -J arr -a 10-17%2 -H --wrap 'sleep 60' >/dev/null
sleep 5
run() { echo "== $*"; squeue -S i "$@" 2>/dev/null; echo "-> $?"; }
run -o '%i'
run -o '%.3i|%3i|%-3i'
run -o '%10j|%.10j|%.0j|%0j'
run -o 'x%iy %j z'
run -o '%i%%'
run -o '%%i'
run -o '%'
run -o '%i%'
run -o '%5'
run -o '%.5'
run -o 'no fields'
run -o ''
run -o '%i\t%j'
run -o '%i %~ %j'
run -O jobid,name
run -O 'jobid:6,name:5'
run -O 'jobid:.6,name:.30'
run -O 'JobID:6 ,Name'
run -O 'jobid:6|,name:.8|'
run -O 'jobid:0,name:0'
run -O 'jobid:,name:'
run -O 'jobid:x'
run -O 'jobid:.,name'
run -O 'jobid,,name'
run -O ''
run -O 'timelimit:12,numcpus:4,minmemory:6,state:9,reason:20'
run -h -o '%l %C %m %T %r'
run -o '%18i %9P' -h
for l in i j u P T t D C l N R r F K m c A Q; do run -h -o "|%.2$l|%2$l|"; done
for f in jobid name username partition state numnodes numcpus timelimit nodelist reasonlist reason jobarrayid arraytaskid minmemory; do run -h -O "$f:2,$f:.2"; done
export SQUEUE_FORMAT='%i %T'; run -h; unset SQUEUE_FORMAT
SQUEUE_SORT=-i squeue -h -o %i
SQUEUE_STATES=PD squeue -h -S i -o %i
SQUEUE_PARTITION=long squeue -h -o %i
scancel -u root
settle
