# Open OnDemand's calls: a script on standard input, the queue with all of its fields between control characters, hold, release and the end.
# compare: stdout
us=$(printf '\037'); rs=$(printf '\036')
fields="%a ${us}%A ${us}%C ${us}%D ${us}%E ${us}%F ${us}%h ${us}%H ${us}%i ${us}%I ${us}%j ${us}%J ${us}%k ${us}%K ${us}%l ${us}%m ${us}%n ${us}%O ${us}%P ${us}%r ${us}%t ${us}%T ${us}%u ${us}%w ${us}%W ${us}%x ${us}%X ${us}%y ${us}%z"
queue() { squeue --all --states=all --noconvert -o "${rs}${fields}" "$@" | tr '\036\037' '\n|' | sed 's/  *$//'; }
some() { squeue --all --states=all --noconvert -o "${rs}%i${us}%j${us}%t${us}%r${us}%E" "$@" | tr '\036\037' '\n|'; }
mkdir -p out
first=$(printf '#!/bin/bash\necho "in $(basename $PWD) as $MARK"\nsleep 300\n' | MARK=blue sbatch -D "$PWD/out" -J "sys/dashboard/first" -o "$PWD/out/first.log" --export ALL -t 00:10:00 --parsable)
second=$(printf '#!/bin/bash\nsleep 4\necho second\n' | sbatch -H -D "$PWD/out" -J second -o "$PWD/out/second.log" --export NONE -n 2 -t 00:05:00 --comment "a form" --parsable)
third=$(printf '#!/bin/bash\necho third\n' | sbatch -D "$PWD/out" -J third -o "$PWD/out/third.log" -d afterok:$second --parsable)
for i in 1 2 3 4 5 6 7 8 9 10; do squeue --noheader -o '%t' -j $first | grep -q R && break; sleep 1; done
some -j $first; some -u "$(id -un)" | grep . | sort
queue -j $second
scontrol release $second; echo $?
scontrol hold $third; echo $?
for i in 1 2 3 4 5 6 7 8 9 10; do squeue --noheader -t CD -o '%t' -j $second | grep -q CD && break; sleep 1; done
squeue -h -o '%i %t' -j $third
scontrol release $third; echo $?
scancel $first; echo $?
settle; some -j $first,$second,$third | grep . | sort
cat out/second.log out/third.log
