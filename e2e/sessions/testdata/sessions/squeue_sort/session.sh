# What squeue -S takes.
sbatch -J b -H -p long -o /dev/null --wrap true; sbatch -J a -H -n2 -o /dev/null --wrap true; sbatch -J c -H -n3 -o /dev/null --wrap true
for s in foo i -i j -j 'p,-i' '+j' '-C' 'P,j' Z 1 '?' '%i' i-j 'i,,j' s x; do echo "[$s]"; squeue -h -S "$s" -o '%i %j'; echo "rc $?"; done 2>&1
for s in z '' ',' '-' '--'; do squeue -h -S "$s" -o '%i %j' | sort; done
SQUEUE_SORT=foo squeue -h -o %i; squeue --sort; echo "rc $?"; scancel -u root; settle
