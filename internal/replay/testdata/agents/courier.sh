#!/bin/sh
# A courier, in the protocol of exec agents. What it does outside a step is to knock at
# the door that DOOR names, if there is one.
ask() { # id, name, effect, what it gives
	printf '{"type":"step","id":%s,"name":"%s","kind":"tool","effect":"%s","input":{"parcel":%s}}\n' "$1" "$2" "$3" "$loop"
	read -r answer
	case $answer in
	*'"type":"proceed"'*)
		printf '{"type":"result","id":%s,%s}\n' "$1" "$4"
		;;
	*'"type":"result"'*) : ;;
	*) exit 1 ;;
	esac
}
while read -r hello; do
	loop=${hello##*'"loop":'}
	loop=${loop%%,*}
	if [ -n "$DOOR" ]; then
		knock "$DOOR"
	fi
	ask 1 fetch idempotent '"result":{"weight":12345678901234567890.10}'
	ask 2 deliver once '"error":"nobody is at home","definite":true'
	where=neighbour
	echo "loop $loop: left at the $where" >&2
	ask 3 leave once "\"result\":\"at the $where\""
	printf '{"type":"state","patch":{"left_%s":"%s"}}\n' "$loop" "$where"
	case $loop in
	1) echo '{"type":"end","outcome":"continue","headline":"1 of 3"}' ;;
	2) echo '{"type":"end","outcome":"wait","wait":{"for":"message","what":"the next parcel"}}' ;;
	*) echo '{"type":"end","outcome":"complete","reason":"all delivered","result":3}' ;;
	esac
done
