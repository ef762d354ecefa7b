package trigger

// Hold lets bodies share so many bytes.
func (r *Receiver) Hold(n int64) { r.most = n }
