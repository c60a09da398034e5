# Arguments that quoting makes odd: empty, with spaces, lines, stars, dashes, long.
cat > j.sh <<'X'
#!/bin/bash
#SBATCH -n2
echo "script $# <$1> <$2> <$3> <$4>"
show() { srun -n1 bash -c 'printf "<%s>" "$@"; echo " $#"' "$@"; }
show zero '' 'a b' $'two\nlines' '*' '$HOME' "it's" 'say "x"' '\' '\\n' 'ä€😀' $'\t' -n5 -- --help '#' '' ''
srun -n1 -- echo -n dash; echo; srun -n1 printf '%s\n' -l
srun -n1 echo; srun -n1 echo ''; srun -n1 echo "  spaces  "; srun -n1 env A='b c' bash -c 'echo "$A"'
srun -n1 '' ; echo "rc $?"; srun -n1 ' ' ; echo "rc $?"
long=$(head -c 100000 /dev/zero | tr '\0' x); srun -n1 bash -c 'echo ${#1}' zero "$long"
args=(); for i in $(seq 3000); do args+=("a$i"); done; srun -n1 bash -c 'echo $# ${!#}' zero "${args[@]}"
big="$long" srun -n1 bash -c 'echo ${#big}'
srun -n1 bash -c "$(printf 'echo 1\necho 2 # comment\n# only\necho 3')"
f() { echo "function $1 $SLURM_PROCID"; }; export -f f; srun bash -c 'f "x y"' | sort
srun -n1 bash -c "$(declare -f f); f z"
v=$'one\ntwo  spaces' srun -n1 bash -c 'echo "$v"'
eval "srun -n1 echo 'in eval' \"two  spaces\""
cmd="srun -n1 echo from a variable"; $cmd; cmd=(srun -n1 echo "from  an" array); "${cmd[@]}"
X
sbatch -W -o o j.sh '' 'a  b' $'x\ny' '--foo="bar"' > /dev/null; grep -v '^srun\|^slurmstepd' o
