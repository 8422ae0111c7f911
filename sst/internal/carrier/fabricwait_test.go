package carrier

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-fabric/weft/fabric"
	"github.com/weft-fabric/weft/prov/loop"
)

// waits has n goroutines wait until that ends.
func waits(f *Fabric, n int) <-chan error {
	over := make(chan error, n)
	for range n {
		go func() {
			for {
				if err := f.Wait(context.Background(), nil); err != nil {
					over <- err
					return
				}
			}
		}()
		synctest.Wait()
	}
	return over
}

// TestFabricWaitsEnd: Wait ends with ErrClosed after Close, also if several wait.
func TestFabricWaitsEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := loop.New()
		a := place(t, p, fabric.DomainConfig{Progress: fabric.Manual}).settle(t, FabricConfig{Progress: fabric.Manual, CloseTimeout: time.Minute})
		over := waits(a.f, 2)
		_ = a.f.Close()
		for range 2 {
			select {
			case err := <-over:
				if !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			case <-time.After(time.Hour):
				t.Error("a Wait goes on an hour after Close")
				a.f.Wake()
			}
		}
	})
}

// TestFabricCloseBesideWaits: Close returns within CloseTimeout, although others wait.
func TestFabricCloseBesideWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := loop.New()
		a := place(t, p, fabric.DomainConfig{Progress: fabric.Manual}).settle(t, FabricConfig{Progress: fabric.Manual, CloseTimeout: time.Second})
		b := place(t, p, fabric.DomainConfig{Progress: fabric.Auto}).settle(t, FabricConfig{})
		a.reach(t, b)
		over := waits(a.f, 2)
		closed := make(chan struct{})
		go func() {
			_ = a.f.Close()
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(time.Hour):
			t.Error("Close goes on after an hour")
			for range 10 {
				a.f.Wake()
				synctest.Wait()
			}
			<-closed
		}
		for range 2 {
			select {
			case <-over:
			case <-time.After(time.Hour):
				t.Error("a Wait goes on an hour after Close")
				a.f.Wake()
			}
		}
	})
}
