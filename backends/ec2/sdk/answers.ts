import type { EC2Client } from '@aws-sdk/client-ec2'

/** Root element of EC2's answers, whose name is the action's with this suffix. */
const ROOT = /^\s*(?:<\?xml[^>]*\?>\s*)?<(\w+)Response[\s/>]/
const ROOT_WITHIN_BYTES = 500

interface HttpAnswer {
  statusCode: number
  body: unknown
}

/**
 * Refuses a body that is not EC2's answer to this action, although its status is 200: an empty body, or the page of a proxy. The SDK reads both as
 * empty lists, and an empty list would mean that machines and reservations are gone. Refuses a page of a list that names itself as the next.
 */
export function refusingStrangers(client: EC2Client): EC2Client {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        const result = await next(args)
        const response = result.response as HttpAnswer
        if (response.statusCode < 200 || response.statusCode >= 300) return result
        const body = await bytesOf(response.body)
        const text = body.subarray(0, ROOT_WITHIN_BYTES).toString('utf8')
        if (`${ROOT.exec(text)?.[1]}Command` !== commandName) throw strange(response.statusCode, text)
        response.body = body
        return result
      },
    // The step precedes the SDK's own parser.
    { step: 'deserialize', priority: 'low', name: 'refusingStrangers' },
  )
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args)
      const asked = (args.input as Paged).NextToken
      if (asked === undefined || (result.output as Paged).NextToken !== asked) return result
      throw Object.assign(new Error('EC2 answered a page of a list with the token of that page'), {
        name: 'RepeatedPage',
        $metadata: result.output.$metadata,
      })
    },
    // Otherwise the list of the pages never ends.
    { step: 'initialize', name: 'refusingRepeatedPages' },
  )
  return client
}

interface Paged {
  NextToken?: string
}

async function bytesOf(body: unknown): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of body as AsyncIterable<Uint8Array>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function strange(httpStatusCode: number, text: string): Error {
  const begin = text.trim().slice(0, 60)
  const what = begin === '' ? 'an empty answer' : `an answer that is not EC2's to this call (${begin})`
  const error = new Error(`${what}: a proxy may be in between`)
  return Object.assign(error, { name: 'StrangeAnswer', $metadata: { httpStatusCode } })
}
