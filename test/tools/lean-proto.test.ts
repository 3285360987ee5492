import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from '@jest/globals'

const LEAN_PROTO = pathToFileURL(join(__dirname, '../../tools/lean-proto.mjs')).href

/** Jest loads no ES modules. */
function leanProto(root: object, code: string): object {
  const program = `import { leanProto } from '${LEAN_PROTO}'
    console.log(JSON.stringify(leanProto(...JSON.parse(process.argv[1]))))`
  const args = ['--input-type=module', '-e', program, JSON.stringify([root, code])]
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as object
}

const fields = (...types: string[]) =>
  Object.fromEntries(types.map((type, index) => [`field${index}`, { type, id: index + 1 }]))

const ROOT = {
  nested: {
    api: {
      nested: {
        Jobs: {
          methods: {
            ListJobs: {
              requestType: 'ListRequest',
              responseType: 'ListResponse',
              options: { '(http)': '/jobs' },
            },
            EndJob: { requestType: 'EndRequest', responseType: 'other.Empty' },
          },
        },
        ListRequest: { fields: fields('string') },
        ListResponse: { fields: fields('Job', 'int32') },
        // A tree, in which each part names the whole.
        Job: { fields: fields('Job', 'Part', 'State'), nested: { Part: { fields: fields('Job') } } },
        State: { values: { NEW: 0 } },
        Part: { fields: fields('string') },
        EndRequest: { fields: fields('string') },
        Unused: { fields: fields('ListRequest') },
        Wrapper: { fields: {}, nested: { Inner: { fields: fields('string') } } },
      },
    },
    other: {
      options: { go: 'other' },
      nested: { Empty: { fields: {} }, http: { type: 'string', id: 1, extend: 'x' } },
    },
  },
}

/** Names of what is left, without namespaces. */
function namesIn({ nested = {} }: { nested?: Record<string, object> }, prefix = ''): string[] {
  return Object.entries(nested).flatMap(([name, inner]) => [
    ...('fields' in inner || 'values' in inner || 'methods' in inner ? [`${prefix}${name}`] : []),
    ...namesIn(inner, `${prefix}${name}.`),
  ])
}

describe('leanProto', () => {
  it('keeps what a named service needs for the calls whose names occur', () => {
    const lean = leanProto(ROOT, 'const { Jobs } = proto; create(proto.api.Jobs).listJobs({})')
    expect(namesIn(lean)).toEqual([
      'api.Jobs',
      'api.ListRequest',
      'api.ListResponse',
      // Of two messages of one name the inner one is meant.
      'api.Job',
      'api.Job.Part',
      'api.State',
    ])
    expect(lean).toMatchObject({
      nested: {
        api: {
          nested: {
            Jobs: { methods: { ListJobs: { requestType: 'ListRequest', responseType: 'ListResponse' } } },
          },
        },
      },
    })
    expect(JSON.stringify(lean)).not.toMatch(/EndJob|http/)
  })

  it('keeps what the code names itself, and the message that it lies in', () => {
    expect(namesIn(leanProto(ROOT, "root.lookupType('api.Wrapper.Inner'); x.other.Empty.create()"))).toEqual([
      'api.Wrapper',
      'api.Wrapper.Inner',
      'other.Empty',
    ])
  })

  it('finds a response in another package', () => {
    const names = namesIn(leanProto(ROOT, 'proto.api.Jobs; endJob()'))
    expect(names).toEqual(['api.Jobs', 'api.EndRequest', 'other.Empty'])
  })
})
