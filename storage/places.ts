import { layout } from './layout'
import type { ObjectStore } from './store'

/** Records that machines of a backend may exist at a place from now on. */
export async function notePlace(
  store: ObjectStore,
  { backend, place }: { backend: string; place: string },
): Promise<void> {
  await store.putIfAbsent(layout.place(backend, place), JSON.stringify({ backend, place }))
}

/** Returns earlier places at which machines of a backend may remain, each with the key of its note. */
export async function placesOnceUsed(
  store: ObjectStore,
  { backend, places }: { backend: string; places: readonly string[] },
): Promise<{ place: string; key: string }[]> {
  const found: { place: string; key: string }[] = []
  for await (const { key } of store.list(layout.places(backend))) {
    const other = key.slice(layout.places(backend).length).replace(/\.json$/, '')
    if (!places.includes(other)) found.push({ place: other, key })
  }
  return found
}
