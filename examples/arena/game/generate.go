package game

import "encoding/binary"

// Maps come from a seed here, as they would come from an editor elsewhere: lakes with
// sand around them, woods, and ruins to hide in.

const (
	ruins = 900 // attempts; about half of them lie in water or too near to another

	// Of 256 steps of a height that is mostly about 128: more water leaves islands,
	// less leaves a plain.
	waterline = 88
	beach     = 98
	wood      = 150
	meadow    = 120
)

// Generate makes the map of a seed. All of it that can be walked on is connected.
func Generate(seed uint64) *Map {
	g := generator{rng: seed, bytes: make([]byte, MapSize)}
	copy(g.bytes, mapMark)
	binary.LittleEndian.PutUint16(g.bytes[len(mapMark):], Columns)
	binary.LittleEndian.PutUint16(g.bytes[len(mapMark)+2:], Rows)
	g.land()
	for range ruins {
		g.ruin()
	}
	g.connect()
	return &Map{g.bytes}
}

type generator struct {
	rng   uint64
	bytes []byte
}

func (g *generator) tile(column, row int) *byte { return &g.bytes[mapHead+row*Columns+column] }

// land decides every tile by two heights, one of the ground and one of what grows.
func (g *generator) land() {
	ground, growth := random(&g.rng), random(&g.rng)
	for row := range Rows {
		for column := range Columns {
			height := (3*noise(ground, column, row, 24) + noise(ground+1, column, row, 7)) / 4
			green := (noise(growth, column, row, 20) + noise(growth+1, column, row, 5)) / 2
			t := Ground
			switch {
			case height < waterline:
				t = Water
			case height < beach:
				t = Sand
			case green > wood && lattice(growth, column, row)%3 == 0:
				t = Tree
			case green > meadow:
				t = Grass
			}
			*g.tile(column, row) = byte(t)
		}
	}
}

// ruin builds a house with a door in each wall, some of whose stones are gone. It
// builds none in water, nor through another one.
func (g *generator) ruin() {
	width, height := 7+int(random(&g.rng)%10), 5+int(random(&g.rng)%5)
	left, top := 1+int(random(&g.rng)%(Columns-20)), 1+int(random(&g.rng)%(Rows-12))
	for row := top - 1; row <= top+height; row++ {
		for column := left - 1; column <= left+width; column++ {
			if t := Tile(*g.tile(column, row)); t == Water || t == Wall {
				return
			}
		}
	}
	for row := range height {
		for column := range width {
			t := Ground
			edge := row == 0 || row == height-1 || column == 0 || column == width-1
			door := column == width/2 || column == width/2+1 || row == height/2
			if edge && !door && random(&g.rng)%8 > 0 {
				t = Wall
			}
			*g.tile(left+column, top+row) = byte(t)
		}
	}
}

// connect lets trees grow wherever one could walk but not get to from the largest part.
func (g *generator) connect() {
	m := Map{g.bytes}
	part := make([]int, Columns*Rows) // of each tile; 0: none
	sizes := []int{0}
	largest := 0
	for start := range part {
		if part[start] != 0 || m.At(start%Columns, start/Columns) >= Water {
			continue
		}
		sizes = append(sizes, m.fill(part, start, len(sizes)))
		if n := len(sizes) - 1; sizes[n] > sizes[largest] {
			largest = n
		}
	}
	for i, p := range part {
		if p != 0 && p != largest {
			g.bytes[mapHead+i] = byte(Tree)
		}
	}
}

// fill gives all that can be reached from a tile to a part, and returns how much
// that is.
func (m *Map) fill(part []int, start, number int) (size int) {
	part[start] = number
	for edge := []int{start}; len(edge) > 0; size++ {
		last := len(edge) - 1
		column, row := edge[last]%Columns, edge[last]/Columns
		edge = edge[:last]
		for _, d := range [4][2]int{{1, 0}, {-1, 0}, {0, 1}, {0, -1}} {
			c, r := column+d[0], row+d[1]
			if m.At(c, r) < Water && part[r*Columns+c] == 0 { // outside it is Wall
				part[r*Columns+c] = number
				edge = append(edge, r*Columns+c)
			}
		}
	}
	return size
}

// noise is a smooth height from 0 to 255 that changes over so many tiles.
func noise(seed uint64, column, row, tiles int) int {
	x, y := column/tiles, row/tiles
	dx, dy := column%tiles, row%tiles
	mix := func(a, b, d int) int { return (a*(tiles-d) + b*d) / tiles }
	corner := func(x, y int) int { return int(lattice(seed, x, y) & 255) }
	return mix(mix(corner(x, y), corner(x+1, y), dx), mix(corner(x, y+1), corner(x+1, y+1), dx), dy)
}

// lattice is a random number for each point of a grid.
func lattice(seed uint64, x, y int) uint64 {
	state := seed ^ uint64(x)<<32 ^ uint64(y)
	random(&state)
	return random(&state)
}

// random is splitmix64: small, and the same everywhere.
func random(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	x := *state
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
