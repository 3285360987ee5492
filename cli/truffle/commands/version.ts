import type { Command } from 'commander'
import { version as packageVersion } from '../../kit/package'
import { addShared } from '../options'
import type { Session } from '../session'

export function define(command: Command, session: Session): void {
  addShared(command).action(() => {
    const version = packageVersion()
    session.answer({
      command: 'version',
      results: [{ version }],
      columns: ['version'],
      more: { version },
      unanswered: [],
      notes: [],
      show: (out) => out.line(version),
    })
  })
}
