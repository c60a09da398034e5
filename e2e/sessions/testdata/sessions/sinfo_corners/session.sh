# Groups of nodes, states and formats of sinfo that nobody thinks of first.
sbatch -w n1 -N1 --exclusive -t 5 -o /dev/null --wrap 'sleep 60' >/dev/null
sbatch -w n2 -n1 -t 5 -o /dev/null --wrap 'sleep 60' >/dev/null
scontrol update NodeName=n4 State=DRAIN Reason='bad disk'
sleep 5
run() { echo "== $*"; sinfo "$@" 2>/dev/null; echo "-> $?"; }
run
run -s
run -N
run -N -l -h | awk '{$8 = ""; print}'
run -o '%P %a %l %D %t %N'
run -o '%N %C'
run -o '%P %F'
run -o '%D %T'
run -o '%t %D' -p main
for s in idle idle,mix drain drained alloc allocated mixed bogus; do run -h -o %N -t $s; done
run -h -o '%N' -n n1,n3
run -h -o '%N' -n n9
run -h -p nope
run -h -p main,long -o '%P %D'
run -R -h -o '%E %N'
run -R -o '%.5E %.8u %N'
run -d -h
run -r -h -o '%P %N'
run -O partition,nodes:6,statecompact:8,nodelist
run -S '-P' -h -o '%P'
run -S N -N -h -o '%N %P'
run -e -h -o '%N %c %m'
run -o '%c %X %Y %Z %z %m %w %f' -h
run -h -o '%10P|%.10P|%5a'
run -h -o '%.2P|%2P|%4P|%.5P|%2N|%.2T|%2T|%.2l|%2l|%.2D|%2C|%.2C'
run -O bogus
run -o '%!' -h
run -o '%P%%' -h
run --bogus
SINFO_FORMAT='%P' sinfo -h
SINFO_PARTITION=long sinfo -h -o %P
scancel -u root
settle
