// Pushes one upload with tus-js-client as a JSON object on standard input says; says what came of it.
const crypto = require('crypto')
const fs = require('fs')
const tus = require('tus-js-client')

const given = JSON.parse(fs.readFileSync(0, 'utf8'))
const data = Buffer.from(given.data, 'base64')
const said = { requests: [], receipt: null, error: null, url: null }

function end() {
  said.url = upload.url
  process.stdout.write(JSON.stringify(said))
}

const upload = new tus.Upload(data, {
  endpoint: given.endpoint,
  uploadUrl: given.url,
  chunkSize: given.chunk_bytes || Infinity,
  uploadDataDuringCreation: given.together || false,
  retryDelays: Array(given.n_tries || 60).fill(20),
  onBeforeRequest(request) {
    // Signatures are bytes, and what the client would encode is text.
    if (request.getMethod() === 'POST') request.setHeader('Upload-Metadata', given.metadata)
    if (given.checksum && request.getMethod() === 'PATCH') {
      const start = Number(request.getHeader('Upload-Offset'))
      const part = data.subarray(start, start + given.chunk_bytes)
      const sum = crypto.createHash('sha256').update(part).digest('base64')
      request.setHeader('Upload-Checksum', `sha256 ${sum}`)
    }
  },
  onAfterResponse(request, response) {
    said.requests.push([request.getMethod(), response.getStatus()])
    said.receipt = response.getHeader('Datacollect-Receipt') || said.receipt
  },
  onChunkComplete(chunkBytes, acceptedBytes) {
    if (given.stop_at && acceptedBytes >= given.stop_at) {
      upload.abort(given.terminate || false).then(end, end)
    }
  },
  onError(error) {
    said.error = String(error)
    end()
  },
  onSuccess: end,
})
upload.start()
