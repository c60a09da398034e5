# Begin times: the forms of --begin, and scontrol update StartTime.
rc() { timeout 20 "$@" > /dev/null 2>&1 < /dev/null; echo "$* : rc $?"; }
state() { scontrol show job $1 | grep -oE '(JobState|Reason)=\S+' | tr '\n' ' '; echo; }
for b in now now+1 now+1minute now+2hours now+3days now+1week now-1hour today tomorrow midnight noon teatime 16:00 3pm 2010-01-01 2030-01-20T12:34:00 2030-01-20 0120 01/20/30 now+ now+x soon '' now+1month 25:00 fika elevenses; do rc sbatch -H --begin="$b" --wrap true; done
scancel -u root; settle
sbatch --parsable --begin=now+1hour --wrap true -o /dev/null > id; id=$(cat id); sleep 1.5; state $id
scontrol update JobId=$id StartTime=now; echo "rc $?"; settle; state $id
sbatch --parsable --begin=now+1hour --wrap true -o /dev/null > id; id=$(cat id); scontrol update JobId=$id StartTime=now+2hours; echo "rc $?"; sleep 1.5; state $id; scontrol update JobId=$id EligibleTime=now; echo "rc $?"; settle; state $id
sbatch --parsable --begin=now --wrap true -o /dev/null > id; id=$(cat id); settle; state $id; scontrol update JobId=$id StartTime=now; echo "rc $?"
sbatch --parsable --wrap 'sleep 3' -o /dev/null > id; id=$(cat id); sleep 1.5; scontrol update JobId=$id StartTime=now; echo "rc $?"; scontrol update JobId=$id StartTime=soon; echo "rc $?"; settle
sbatch --parsable -H --wrap true -o /dev/null > id; id=$(cat id); scontrol update JobId=$id StartTime=now; echo "rc $?"; state $id; scontrol release $id; settle; state $id
