package compare

// maxTable bounds the work of an alignment, in cells: beyond it only what is the same at
// either end is matched.
const maxTable = 4 << 20

// align matches the members of two lists of n and m that are the same, in order: as many of
// them as can be, each as the pair of its places.
func align(n, m int, same func(i, j int) bool) (pairs [][2]int) {
	begin := 0
	for begin < n && begin < m && same(begin, begin) {
		pairs = append(pairs, [2]int{begin, begin})
		begin++
	}
	end := 0
	for end < n-begin && end < m-begin && same(n-1-end, m-1-end) {
		end++
	}
	pairs = append(pairs, middle(begin, n-end, begin, m-end, same)...)
	for ; end > 0; end-- {
		pairs = append(pairs, [2]int{n - end, m - end})
	}
	return pairs
}

// middle matches what lies between two ends that are the same.
func middle(i0, i1, j0, j1 int, same func(i, j int) bool) (pairs [][2]int) {
	n, m := i1-i0, j1-j0
	if n == 0 || m == 0 || n > maxTable/m {
		return nil
	}
	// most[i][j] is how many pairs the rest from i and j on has at most.
	most := make([]int32, (n+1)*(m+1))
	at := func(i, j int) *int32 { return &most[i*(m+1)+j] }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if same(i0+i, j0+j) {
				*at(i, j) = *at(i+1, j+1) + 1
			} else {
				*at(i, j) = max(*at(i+1, j), *at(i, j+1))
			}
		}
	}
	for i, j := 0, 0; i < n && j < m; {
		switch {
		case same(i0+i, j0+j):
			pairs = append(pairs, [2]int{i0 + i, j0 + j})
			i, j = i+1, j+1
		case *at(i+1, j) >= *at(i, j+1):
			i++
		default:
			j++
		}
	}
	return pairs
}

// gaps calls fn for each stretch of either list between two matched pairs; one of the two
// may be empty, both are not.
func gaps(n, m int, pairs [][2]int, fn func(i0, i1, j0, j1 int), match func(i, j int)) {
	i, j := 0, 0
	for _, p := range append(pairs[:len(pairs):len(pairs)], [2]int{n, m}) {
		if p[0] > i || p[1] > j {
			fn(i, p[0], j, p[1])
		}
		if p[0] < n && p[1] < m {
			match(p[0], p[1])
		}
		i, j = p[0]+1, p[1]+1
	}
}
