# One job after the other.
a=$(sbatch --parsable -o o1 --wrap='echo first > made; sleep 1')
b=$(sbatch --parsable -d afterok:$a -o o2 --wrap='cat made; exit 3')
c=$(sbatch --parsable -d afternotok:$b -o o3 --wrap='echo after a failure')
d=$(sbatch --parsable -d afterany:$b:$c -o o4 --wrap='echo last')
e=$(sbatch --parsable -d singleton -J one -o o5 --wrap='echo one'); f=$(sbatch --parsable -d singleton -J one -o o6 --wrap='echo two')
settle; cat o1 o2 o3 o4 o5 o6
for i in $a $b $c $d $e $f; do scontrol show job $i | grep -oE '(JobState|ExitCode)=[^ ]*' | tr '\n' ' '; echo; done
sbatch -d afterok:9999 --wrap=true > /dev/null 2>&1; echo $?; sbatch -d nonsense --wrap=true > /dev/null 2>&1; echo $?
settle 5
