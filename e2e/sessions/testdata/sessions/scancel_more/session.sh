# unordered: s3
# scancel -s, -b, -f: which of script, its children and steps hear the signal; to several nodes; of jobs that are not there.
sbatch -N2 -n2 -o s1 --wrap 'trap "echo script" USR1; srun bash -c "trap \"echo step; exit 3\" USR1; for i in \$(seq 100); do sleep 0.1; done" 2>/dev/null & wait; wait; echo end'; sleep 3; scancel -s USR1 1001; settle; sort s1 | grep -v User
sbatch -o s2 --wrap 'trap "echo script" USR2; bash -c "trap \"echo child; exit\" USR2; for i in \$(seq 50); do sleep 0.1; done" & wait; wait; echo end'; sleep 2; scancel --batch --signal=USR2 1002; settle; grep -v User s2
sbatch -o s3 --wrap 'trap "echo script" USR2; bash -c "trap \"echo child; exit\" USR2; for i in \$(seq 50); do sleep 0.1; done" & wait; wait; echo end'; sleep 2; scancel --full --signal=USR2 1003; settle; sort s3 | grep -v User
sbatch -o s4 --wrap 'srun sleep 30 2>/dev/null; echo "rc $?"; echo end'; sleep 3; scancel 1004.0; settle; cat s4; scancel -s USR1 1004; echo "rc $?"; scancel -s NOSUCH 1004 2>/dev/null; echo "rc $?"; scancel -s USR1 999 2>/dev/null; echo "rc $?"
sbatch -o s5 --wrap 'sleep 30'; sleep 2; scancel -s KILL -b 1005; settle; squeue -h -t all -o '%i %T' | sort; sbatch -o s6 -J nm --wrap 'trap "echo stop" 10; for i in $(seq 30); do sleep 0.1; done; echo end'; sleep 2; scancel -b -s 10 -n nm; settle; grep -v User s6
