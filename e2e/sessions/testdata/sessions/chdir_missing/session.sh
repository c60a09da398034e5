# A folder that is missing, and files that are relative to it.
top=$PWD
show() { scontrol show job $1 | grep -oE '(JobState|ExitCode)=[^ ]*' | tr '\n' ' '; echo; }
sbatch -D /missing/there --wrap 'echo default >&2; pwd'
sbatch -D /missing/there -o out --wrap 'echo relative'
sbatch -D /missing/there -o $top/whole --wrap 'echo whole; pwd'
sbatch -D /missing/there -o $top/whole2 -e err --wrap 'echo error'
sbatch -D missing -o $top/whole3 -i in --wrap 'cat'
sbatch --chdir=missing -o sub/out --wrap 'echo sub'
echo taken > in; sbatch -D missing -o $top/whole4 -i $top/in --wrap 'cat'
sbatch -D missing --array=1-2 --wrap 'echo array'
settle
for job in 1001 1002 1003 1004 1005 1006 1007 1008; do show $job; done
ls | grep -v session; grep -v slurmstepd whole | grep -c .; cat whole4 | grep -v slurmstepd; ls /missing 2>&1 | grep -c cannot
