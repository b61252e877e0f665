package main
import ("testing";"time";"fmt";"github.com/ackbits/ackbits/internal/scenario";"github.com/ackbits/ackbits/internal/simnet")
func TestZZ(t *testing.T){
 w := scenario.W1; w.Duration=2*time.Minute
 for _, p := range peers { for _, n := range []string{"0","5","30","b"} {
  l := simnet.Config{Delay:50*time.Millisecond}
  switch n {case "1": l.Loss=.01; case "5": l.Loss=.05; case "10": l.Loss=.1; case "30": l.Loss=.3; case "b": l.Burst=simnet.Burst{MeanGood:1120*time.Millisecond,MeanBad:80*time.Millisecond,LossBad:.75}}
  s := time.Now()
  r := p.play(t, 1, l, w)
  fmt.Println(p.name, n, r.Quantile(.5).Milliseconds(), r.Quantile(.99).Milliseconds(), r.Quantile(.999).Milliseconds(), r.Bytes, r.Sent, len(r.Latencies), r.Twice, r.Err, time.Since(s).Milliseconds())
 }}
}
