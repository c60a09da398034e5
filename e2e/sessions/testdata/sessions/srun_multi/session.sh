# --multi-prog: ranks in lists and ranges, *, %t and %o, quotes, comments, arguments, errors.
cat > job.sh <<'X'
#!/bin/bash
#SBATCH -N2 -n6 -o out
cat > a.conf <<'Y'
# a comment
0 echo first %t
1-2 echo range %t %o
3,5 echo 'two words' "more words" %t %o
* echo rest %t %o

Y
srun -l --multi-prog a.conf | sort
printf '0-3 echo a %%t\n' > b.conf; srun --multi-prog b.conf > /dev/null 2>&1; echo "rc $?"; srun -n4 --multi-prog b.conf | sort
printf '0-5 bash -c "exit %%t"\n' > c.conf; srun --multi-prog c.conf 2> /dev/null; echo "rc $?"; printf '0 echo x\n1-9 echo y\n' > d.conf; srun -n2 --multi-prog d.conf 2>/dev/null | sort; echo "rc ${PIPESTATUS[0]}"
printf '0 echo a\\ b\n* echo \\%%t\n' > e.conf; srun -n2 --multi-prog e.conf | sort; srun -n2 --multi-prog e.conf extra | sort; printf '0,0 echo x\n* echo y\n' > f.conf; srun -n2 --multi-prog f.conf | sort; : > g.conf; srun -n2 --multi-prog g.conf > /dev/null 2>&1; echo "rc $?"
X
sbatch job.sh; settle; cat out
