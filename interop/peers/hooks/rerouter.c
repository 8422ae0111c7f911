// A library that changes the slots through which the program calls munmap, as UCX does where it may not patch code.
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int rerouter_munmap(void *addr, size_t n) { return (int)syscall(SYS_munmap, addr, n); }

static const char *names;
static const ElfW(Sym) *symbols;

static void reroute(ElfW(Addr) base, const ElfW(Rela) *r, size_t bytes)
{
	for (size_t i = 0; r && i < bytes / sizeof *r; i++) {
		if (strcmp(names + symbols[ELF64_R_SYM(r[i].r_info)].st_name, "munmap") != 0)
			continue;
		void **slot = (void **)(base + r[i].r_offset);
		unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE);
		mprotect((void *)((unsigned long)slot & ~(page - 1)), page, PROT_READ | PROT_WRITE);
		*slot = (void *)rerouter_munmap;
	}
}

// program is called for the program first, and ends there.
static int program(struct dl_phdr_info *info, size_t size, void *arg)
{
	const ElfW(Rela) *plt = NULL, *data = NULL;
	size_t plt_bytes = 0, data_bytes = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag != DT_NULL; d++) {
			const void *at = (const void *)d->d_un.d_ptr;
			switch (d->d_tag) {
			case DT_STRTAB: names = at; break;
			case DT_SYMTAB: symbols = at; break;
			case DT_JMPREL: plt = at; break;
			case DT_PLTRELSZ: plt_bytes = d->d_un.d_val; break;
			case DT_RELA: data = at; break;
			case DT_RELASZ: data_bytes = d->d_un.d_val; break;
			}
		}
	}
	reroute(info->dlpi_addr, plt, plt_bytes);
	reroute(info->dlpi_addr, data, data_bytes);
	return 1;
}

__attribute__((constructor)) static void begin(void) { dl_iterate_phdr(program, NULL); }
