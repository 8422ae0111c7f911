package cohort

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
)

// The handshake of a connection. Rank 0 speaks first, so that nobody can be made
// to answer a question of his own. Both sides prove that they have the token;
// neither sends it, and what they send is of no use in another connection.
//
//	rank 0 -> rank k   greeting
//	rank k -> rank 0   claim: which rank of how many, and the proof
//	rank 0 -> rank k   verdict: welcome or why not, and the proof
//
// Nothing has a length that the other side chooses, but for the text of a
// verdict, which is short.
const (
	magic    = "weftCO01"
	nonceLen = 32
	macLen   = sha256.Size
	idLen    = 16

	greetingLen    = len(magic) + idLen + nonceLen
	claimLen       = len(magic) + 4 + 4 + nonceLen + macLen
	verdictLen     = 4 + 4 + macLen // without its text
	maxVerdictText = 256
)

type nonce [nonceLen]byte

func newNonce() (n nonce) {
	_, _ = rand.Read(n[:]) // never fails
	return n
}

// cohortID tells cohorts apart: chosen by chance when rank 0 begins to listen. It
// is no secret.
type cohortID [idLen]byte

func newCohortID() (id cohortID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

func (id cohortID) String() string { return hex.EncodeToString(id[:]) }

// newToken makes up a token.
func newToken() string { return rand.Text() + rand.Text() }

// greeting is the first message: magic 8 | id 16 | nonce 32.
type greeting struct {
	id    cohortID
	nonce nonce
}

func (g *greeting) append(b []byte) []byte {
	b = append(b, magic...)
	b = append(b, g.id[:]...)
	return append(b, g.nonce[:]...)
}

func parseGreeting(b []byte) (g greeting, err error) {
	rest, err := cutMagic(b, greetingLen)
	if err != nil {
		return g, fmt.Errorf("greeting: %w", err)
	}
	copy(g.id[:], rest)
	copy(g.nonce[:], rest[idLen:])
	return g, nil
}

// claim is the second: magic 8 | rank u32 | size u32 | nonce 32 | mac 32.
type claim struct {
	rank, size uint32
	nonce      nonce
	mac        [macLen]byte
}

func (c *claim) append(b []byte) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint32(b, c.rank)
	b = binary.LittleEndian.AppendUint32(b, c.size)
	b = append(b, c.nonce[:]...)
	return append(b, c.mac[:]...)
}

func parseClaim(b []byte) (c claim, err error) {
	rest, err := cutMagic(b, claimLen)
	if err != nil {
		return c, fmt.Errorf("claim: %w", err)
	}
	c.rank = binary.LittleEndian.Uint32(rest)
	c.size = binary.LittleEndian.Uint32(rest[4:])
	copy(c.nonce[:], rest[8:])
	copy(c.mac[:], rest[8+nonceLen:])
	return c, nil
}

// cutMagic checks the length and the first bytes of a message.
func cutMagic(b []byte, length int) ([]byte, error) {
	n := min(len(b), len(magic))
	if string(b[:n]) != magic[:n] {
		return nil, fmt.Errorf("%w: it begins with %q, not %q", ErrProtocol, b[:n], magic)
	}
	if len(b) < length {
		return nil, fmt.Errorf("%w: %d bytes of %d: %w", ErrProtocol, len(b), length, io.ErrUnexpectedEOF)
	}
	return b[n:length], nil
}

// Verdicts.
const (
	verdictWelcome = 0
	verdictToken   = 1 // the proof is wrong; ours will be to the other side
	verdictSize    = 2
	verdictRank    = 3
)

// verdict is the third: code u32 | length of text u32 | mac 32 | text.
type verdict struct {
	code uint32
	text string
	mac  [macLen]byte
}

func (v *verdict) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, v.code)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(v.text)))
	b = append(b, v.mac[:]...)
	return append(b, v.text...)
}

// readVerdict reads a verdict; its text is not longer than maxVerdictText.
func readVerdict(r io.Reader) (v verdict, err error) {
	var h [verdictLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return v, err
	}
	v.code = binary.LittleEndian.Uint32(h[:])
	n := binary.LittleEndian.Uint32(h[4:])
	copy(v.mac[:], h[8:])
	if v.code > verdictRank || n > maxVerdictText {
		return v, fmt.Errorf("%w: verdict %d with %d bytes of text", ErrProtocol, v.code, n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return v, fmt.Errorf("text of a verdict: %w", err)
	}
	v.text = string(text)
	return v, nil
}

// exchange is what both sides know of a handshake; proofs cover all of it.
type exchange struct {
	token string
	greeting
	claim claim
}

// claimProof is what only who has the token can say to rank 0 in this exchange.
func (e *exchange) claimProof() [macLen]byte { return e.mac("rank to root", "") }

// verdictProof is what only who has the token can answer, and only to this rank.
func (e *exchange) verdictProof(v *verdict) [macLen]byte {
	return e.mac("root to rank", strconv.FormatUint(uint64(v.code), 10)+" "+v.text)
}

// mac is HMAC-SHA-256 over parts of fixed length, then text, so that two inputs
// never run together into the same bytes.
func (e *exchange) mac(direction, text string) (sum [macLen]byte) {
	h := hmac.New(sha256.New, []byte(e.token))
	b := append([]byte(nil), magic...)
	b = append(b, direction...)
	b = append(b, e.id[:]...)
	b = append(b, e.nonce[:]...)
	b = append(b, e.claim.nonce[:]...)
	b = binary.LittleEndian.AppendUint32(b, e.claim.rank)
	b = binary.LittleEndian.AppendUint32(b, e.claim.size)
	b = append(b, text...)
	_, _ = h.Write(b) // never fails
	h.Sum(sum[:0])
	return sum
}

// same compares proofs in constant time.
func same(a, b [macLen]byte) bool { return hmac.Equal(a[:], b[:]) }
