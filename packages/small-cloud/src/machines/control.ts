import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { ProgramError } from './errors'

export interface ProgramCall {
  program: string
  arguments: string[]
  /** The caller's working directory, in the machine's paths. */
  directory: string
}

export interface ProgramAnswer {
  exitCode: number
  stdout: string
  stderr: string
}

export const SAID_NOTHING: ProgramAnswer = { exitCode: 0, stdout: '', stderr: '' }

/** Longer requests do not come from programs. */
const REQUEST_MAX_BYTES = 4 * 1024 * 1024

/** The socket between a machine's programs and its manager: one request and one answer per connection, each a line of JSON. */
export class Control {
  readonly token = randomBytes(24).toString('base64url')
  /** For `nvidia-smi` alone, which containers have too. */
  readonly gpuToken = randomBytes(24).toString('base64url')
  private readonly server: Server
  private readonly sockets = new Set<Socket>()

  constructor(private readonly handle: (call: ProgramCall) => Promise<ProgramAnswer>) {
    // The caller's half of the connection stays open until the answer.
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.serve(socket))
  }

  /** Resolves to the port on loopback. */
  async listen(): Promise<number> {
    this.server.listen(0, '127.0.0.1')
    await once(this.server, 'listening')
    return (this.server.address() as AddressInfo).port
  }

  async close(): Promise<void> {
    if (!this.server.listening) return
    const closed = once(this.server, 'close')
    this.server.close()
    for (const socket of this.sockets) socket.destroy()
    await closed
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket)
    socket.once('close', () => this.sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    const pieces: Buffer[] = []
    let size = 0
    socket.on('data', (piece: Buffer) => {
      pieces.push(piece)
      size += piece.length
      if (size > REQUEST_MAX_BYTES) return void socket.destroy()
      if (piece.at(-1) !== 10) return
      socket.removeAllListeners('data')
      void this.answer(Buffer.concat(pieces).toString()).then((answer) => {
        if (answer === undefined) socket.destroy()
        else socket.end(JSON.stringify(answer))
      })
    })
  }

  private isKnown({ token, program }: ProgramCall & { token: string }): boolean {
    return token === this.token || (token === this.gpuToken && program === 'nvidia-smi')
  }

  private async answer(text: string): Promise<ProgramAnswer | undefined> {
    const call = parseCall(text)
    if (call === undefined || !this.isKnown(call)) return undefined
    try {
      return await this.handle(call)
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      const exitCode = error instanceof ProgramError ? error.exitCode : 1
      return { exitCode, stdout: '', stderr: `${message}\n` }
    }
  }
}

function parseCall(text: string): (ProgramCall & { token: string }) | undefined {
  try {
    return JSON.parse(text) as ProgramCall & { token: string }
  } catch {
    return undefined
  }
}
