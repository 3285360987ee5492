import { EC2Client } from '@aws-sdk/client-ec2'
import type { RecordEntry } from '../../core/job/record'
import type { ObjectStore, StoredObject } from '../../storage/store'
import { gate } from './process'

/** What every client of the SDK inherits where nothing is gated. Test files of one process share the SDK. */
const UNGATED: unique symbol = Symbol.for('crucible.ungated')

/** What every client of the SDK inherits: one command, one call of AWS with all its sendings. */
interface Sender {
  send: (this: Sender, command: Command, ...rest: unknown[]) => Promise<unknown>
  [UNGATED]?: Sender['send']
}
interface Command {
  constructor: { name: string }
  input: { Key?: string; Body?: unknown }
}

/** From now on every call of the SDK in this process goes through `gate`, by its name at AWS; those without a process as they are. */
export function gateSdk(): void {
  const sender = Object.getPrototypeOf(EC2Client.prototype) as Sender
  const send = (sender[UNGATED] ??= sender.send)
  sender.send = function (this: Sender, command, ...rest) {
    return gate(
      () => nameOf(command),
      () => send.call(this, command, ...rest),
    )
  }
}

function nameOf({ constructor, input: { Key, Body } }: Command): string {
  const name = constructor.name.replace(/Command$/, '')
  return Key === undefined ? name : `${name} ${documentAt(Key, Body)}`
}

/** A store whose calls go through `gate`, by the names that they have where it is a bucket. */
export function gatedStore(store: ObjectStore): ObjectStore {
  const put = (key: string, body?: Buffer | string): string => `PutObject ${documentAt(key, body)}`
  return {
    url: store.url,
    get: (key) => gate(`GetObject ${documentAt(key)}`, () => store.get(key)),
    head: (key) => gate(`HeadObject ${documentAt(key)}`, () => store.head(key)),
    put: (key, body) => gate(put(key, body), () => store.put(key, body)),
    putIfAbsent: (key, body) => gate(put(key, body), () => store.putIfAbsent(key, body)),
    putFile: (key, path) => gate(put(key), () => store.putFile(key, path)),
    getFile: (key, path) => gate(`GetObject ${documentAt(key)}`, () => store.getFile(key, path)),
    copy: (fromKey, toKey) => gate(`CopyObject ${documentAt(toKey)}`, () => store.copy(fromKey, toKey)),
    readUrl: (key, forMs) => store.readUrl(key, forMs),
    signUrls: (key, forMs) => store.signUrls(key, forMs),
    list: (prefix) => listed(() => gate('ListObjectsV2', () => collect(store.list(prefix)))),
    listFolders: (prefix) => gate('ListObjectsV2', () => store.listFolders(prefix)),
    delete: (key) => gate(`DeleteObject ${documentAt(key)}`, () => store.delete(key)),
  }
}

async function collect(objects: AsyncIterable<StoredObject>): Promise<StoredObject[]> {
  const all: StoredObject[] = []
  for await (const object of objects) all.push(object)
  return all
}

async function* listed(list: () => Promise<StoredObject[]>): AsyncGenerator<StoredObject> {
  yield* await list()
}

/** Which document a key names, whatever job and attempt it is of; an entry of a record by its kind. */
export function documentAt(key: string, body?: unknown): string {
  const file = key.slice(key.lastIndexOf('/') + 1)
  if (/\/record\/\d+\.json$/.test(key)) return `record ${body === undefined ? '' : kindOf(body)}`.trim()
  if (key.startsWith('hand-overs/') || key.includes('/hand-overs/')) return 'hand-over'
  if (key.includes('/sends/')) return file.endsWith('-outcome.json') ? 'outcome of a send' : 'mark of a send'
  const folder = /(?:^|\/)(ended|market|limits|logs|files|runners|waiting)\//.exec(key)?.[1]
  // What is put to try the store has another name each time.
  return folder ?? (UUID.test(file) ? 'probe' : file)
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function kindOf(body: unknown): string {
  return (JSON.parse(String(body)) as RecordEntry).kind
}
